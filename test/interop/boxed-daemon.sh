#!/bin/sh
# A daemon, its receiver and schemathesis in a box: its network, its processes and what it can write, the folder $1, are
# gone with it. NODE, CHECKOUT and SCHEMATHESIS say where they are.
set -eu
cd "$1"
shift
SIGNING_SECRET=key PORT=9000 "$NODE" "$CHECKOUT/fixtures/receivers/node.mjs" >/dev/null &
"$NODE" "$CHECKOUT/dist/sandboxd.cjs" --state-dir "$PWD/state" --watch-dir "$PWD/watched" --sandbox-id sbx_1 \
  --webhook-url http://127.0.0.1:9000/ --webhook-secret key --log-level error >/dev/null &
until [ -s state/control-token ]; do sleep 0.1; done
TOKEN=$(cat state/control-token)
export TOKEN
"$SCHEMATHESIS" --config-file "$CHECKOUT/test/interop/sandboxd.toml" run http://127.0.0.1:49983/openapi.json --wait-for-schema 20 "$@"
