import { NODE_FLAGS } from '../../src/base/inspector.ts';
import { HIDDEN_PREFIX, NODE_VARIABLES } from '../../src/base/node-variables.ts';

/** The dynamic loader that programs of an architecture are started by, where there is glibc. */
const DYNAMIC_LOADERS: Record<string, string> = {
  x64: '/lib64/ld-linux-x86-64.so.2',
  arm64: '/lib/ld-linux-aarch64.so.1',
};

/**
 * The shell script that is started as `program`: it becomes the program, so that a signal to its pid reaches it. It
 * runs nothing of its own, keeps what is meant for another Node from this one, and finds the tree also where that was copied elsewhere. Another architecture, or a root
 * without glibc, is one line and exit 1.
 */
export function launcher(program: string, arch: string): string {
  const loader = DYNAMIC_LOADERS[arch];
  if (!loader) throw new Error(`no image is made for ${arch}`);
  return `#!/bin/sh
lib=\${0%/*}/../lib/sandboxd
[ -x "$lib/node" ] || lib=/usr/local/lib/sandboxd
if ! [ -e ${loader} ]; then
  echo "${program}: this build is for ${arch} Linux with glibc: ${loader} is not there" >&2
  exit 1
fi
for name in ${NODE_VARIABLES.join(' ')}; do
  eval '[ -z "\${'$name'+set}" ] || { export ${HIDDEN_PREFIX}'$name'="$'$name'"; unset '$name'; }'
done
exec "$lib/node" ${NODE_FLAGS.join(' ')} "$lib/${program}.cjs" "$@"
`;
}
