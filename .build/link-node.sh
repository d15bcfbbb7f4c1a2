#!/bin/sh
# Makes `node` the pinned one for the scripts of package.json. npm before 11 removes that link when it leaves out the Node
# of the other architecture, which has the same name.
set -e
if [ "$(uname -s)" != Linux ]; then
  echo 'sandboxd is Linux only: use a virtual machine or a container' >&2
  exit 1
fi
cd node_modules/.bin
for node in ../node-linux-*/bin/node; do
  if [ -x "$node" ] && [ ! -x node ]; then ln -sf "$node" node; fi
done
