#!/bin/sh
# Installs the Python programs that test/interop runs into a folder of the checkout. Says nothing and fails nobody;
# where they cannot be had, their tests are skipped by name.
set -u
here=$(dirname "$0")
folder=$here/../../node_modules/.cache/interop
cmp -s "$here/requirements.txt" "$folder/requirements.txt" && exit 0
command -v python3 >/dev/null 2>&1 || exit 0
{
  rm -rf "$folder" && python3 -m venv "$folder" &&
    timeout 180 "$folder/bin/pip" install --disable-pip-version-check -r "$here/requirements.txt" &&
    cp "$here/requirements.txt" "$folder/requirements.txt"
} >/dev/null 2>&1
exit 0
