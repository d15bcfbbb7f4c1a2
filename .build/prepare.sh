#!/bin/sh
# What `npm ci` does last: builds the programs with the pinned Node. npm before 11 removes the link to it when it leaves
# out the Node of the other architecture, which has the same name.
set -e
(cd node_modules/.bin && ln -sf ../node-linux-*/bin/node node)
npm run --silent build
