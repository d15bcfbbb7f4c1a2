#!/bin/sh
# Makes `node` the pinned one for the scripts of package.json.
set -e
if [ "$(uname -s)" != Linux ]; then
  echo 'sandboxd is Linux only: use a virtual machine or a container' >&2
  exit 1
fi

# npm before 11 removes the link when it leaves out the Node of the other architecture, which has the same name.
link() {
  for node in node_modules/node-linux-*/bin/node; do
    if [ -x "$node" ] && [ ! -x node_modules/.bin/node ]; then ln -sf "../../$node" node_modules/.bin/node; fi
  done
}

# npm also leaves out optional packages that ask for a newer Node than the machine's, such as the bundler's native code.
add_left_out() {
  for found in node_modules/@rolldown/binding-linux-*; do
    if [ -e "$found" ]; then return; fi
  done
  node "${npm_execpath:?call it by npm run}" install --no-save --no-audit --no-fund --silent
  link
}

link
add_left_out
