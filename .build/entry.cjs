#!/bin/sh
':' /*
# The first file of every built program, which starts it with the right Node however it is called. A shell reads these
# lines: they become the Node that came with the program, so that the process that was started is the program.
file=$(readlink -f "$0")
folder=${file%/*}
# The Node that came with the program needs it. Other systems install the package too, for what it exports.
glibc=
for loader in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do [ -e "$loader" ] && glibc=$loader; done
# The build puts in what ends here where glibc is too old, from old-glibc.ts.
@GLIBC_CHECK@
# One heap instead of one of each thread; the daemon gives its processes what was set before.
export SANDBOXD_CHILD_MALLOC_ARENA_MAX="$MALLOC_ARENA_MAX" MALLOC_ARENA_MAX=1
# The build puts the program's flags here, which are in src/base/engine/flags.ts.
flags='@NODE_FLAGS@'
for node in "$folder/../node" "$folder"/../node_modules/node-linux-*"/bin/node" "$folder"/../../node-linux-*"/bin/node"; do
  if [ "$glibc" ] && [ -f "$node" ] && [ -x "$node" ]; then exec "$node" $flags "$file" "$@"; fi
done
if ! command -v node >/dev/null; then
  problem='Node 24 or newer is needed; there is none'
  [ "$glibc" ] || problem='it runs only on Linux with glibc, on x64 or arm64'
  echo "$(basename "$0" .cjs): $problem" >&2
  exit 1
fi
exec node "$file" "$@"
*/;

// Any Node since 12 can read this, which knows no `node:` either: the program itself is in a file of its own.
// biome-ignore lint/style/useNodejsImportProtocol: see above.
const { existsSync, readdirSync } = require('fs');
// biome-ignore lint/style/useNodejsImportProtocol: see above.
const { basename, join } = require('path');

const OLDEST = 24;
const CLOSE_ON_EXEC_OFF = [2, 0];
const ARCHITECTURES = ['x64', 'arm64'];
const LOADERS = ['/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1'];
const name = basename(__filename, '.cjs');

/** What this system is, where the programs cannot run on it; or undefined. */
function foreignSystem() {
  const { platform, arch } = process;
  if (platform !== 'linux' || !ARCHITECTURES.includes(arch)) return `${platform} on ${arch}`;
  // A system may keep glibc elsewhere. The report takes long: it is asked only there.
  if (LOADERS.some(existsSync) || process.report.getReport().header.glibcVersionRuntime) return undefined;
  return `Linux on ${arch} without glibc`;
}

/** The Node that came with the program: of a managed sandbox, of a checkout, of an installed package; or undefined. */
function ownNode() {
  const folders = ['../node_modules', '../..'].map((folder) => join(__dirname, folder)).filter(existsSync);
  const packages = folders.flatMap((folder) =>
    readdirSync(folder)
      .filter((each) => each.startsWith('node-linux-'))
      .map((each) => join(folder, each, 'bin/node')),
  );
  return [join(__dirname, '../node'), ...packages].find(existsSync);
}

/** Replaces this process by the program in `node`. Returns or throws where that is impossible. */
function become(node) {
  const libc = require('koffi').load('libc.so.6');
  const fcntl = libc.func('int fcntl(int fd, int command, int flags)');
  const execve = libc.func('int execve(const char *path, const char **argv, const char **envp)');
  for (const fd of [0, 1, 2]) fcntl(fd, ...CLOSE_ON_EXEC_OFF);
  const argv = [node, ...'@NODE_FLAGS@'.split(' '), __filename, ...process.argv.slice(2), null];
  const variables = Object.keys(process.env).map((key) => `${key}=${process.env[key]}`);
  execve(node, argv, [...variables, null]);
}

const foreign = foreignSystem();
if (foreign) {
  process.stderr.write(`${name}: it runs only on Linux with glibc, on x64 or arm64; this is ${foreign}\n`);
  process.exitCode = 1;
} else if (Number.parseInt(process.versions.node, 10) >= OLDEST) {
  require(`./${name}-program.cjs`);
} else {
  try {
    const node = ownNode();
    if (node) become(node);
  } catch {
    // The message below says what to do.
  }
  process.stderr.write(`${name}: Node ${OLDEST} or newer is needed; this is ${process.versions.node}\n`);
  process.exitCode = 1;
}
