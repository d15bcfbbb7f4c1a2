import { NODE_FLAGS } from '../../src/base/engine/flags.ts';
import { HEAPS_VARIABLE, HIDDEN_PREFIX, NODE_VARIABLES } from '../../src/base/node-variables.ts';
import { glibcCheck } from '../old-glibc.ts';

/** glibc's dynamic loader, by architecture. */
const DYNAMIC_LOADERS: Record<string, string> = {
  x64: '/lib64/ld-linux-x86-64.so.2',
  arm64: '/lib/ld-linux-aarch64.so.1',
};

/**
 * The shell script that is installed as `program`. It execs the program, so that a signal to its pid reaches it, hides
 * variables that are meant for another Node, gives the program one heap, and finds the tree wherever that was copied to. On another architecture, or
 * without glibc or with one that is too old, it prints one line and exits with 1. Throws if `arch` is not supported.
 */
export function launcher(program: string, arch: string): string {
  const loader = DYNAMIC_LOADERS[arch];
  if (!loader) throw new Error(`${arch} is not supported`);
  return `#!/bin/sh
lib=\${0%/*}/../lib/sandboxd
[ -x "$lib/node" ] || lib=/usr/local/lib/sandboxd
if ! [ -e ${loader} ]; then
  echo "${program}: this build is for ${arch} Linux with glibc: ${loader} does not exist" >&2
  exit 1
fi
${glibcCheck(program)}
for name in ${NODE_VARIABLES.join(' ')}; do
  eval '[ -z "\${'$name'+set}" ] || { export ${HIDDEN_PREFIX}'$name'="$'$name'"; unset '$name'; }'
done
export ${HIDDEN_PREFIX}${HEAPS_VARIABLE}="$${HEAPS_VARIABLE}" ${HEAPS_VARIABLE}=1
exec "$lib/node" ${NODE_FLAGS.join(' ')} "$lib/${program}.cjs" "$@"
`;
}
