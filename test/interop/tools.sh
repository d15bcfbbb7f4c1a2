#!/bin/sh
# Installs the Python programs that test/interop and test/deploy run into folders of the checkout. Says nothing and fails
# nobody; where they cannot be had, their tests are skipped by name.
set -u
here=$(dirname "$0")
command -v python3 >/dev/null 2>&1 || exit 0

# install REQUIREMENTS FOLDER
install() {
  cmp -s "$1" "$2/requirements.txt" && return
  {
    rm -rf "$2" && python3 -m venv "$2" &&
      timeout 180 "$2/bin/pip" install --disable-pip-version-check -r "$1" &&
      cp "$1" "$2/requirements.txt"
  } >/dev/null 2>&1
}

install "$here/requirements.txt" "$here/../../node_modules/.cache/interop"
install "$here/../deploy/requirements.txt" "$here/../../node_modules/.cache/deploy"
exit 0
