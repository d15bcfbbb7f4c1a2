/** The oldest glibc that everything runs on; better-sqlite3's addon needs it. Its major number is 2. */
const OLDEST_MINOR = 34;

const FOLDERS = ['lib64', 'usr/lib64', 'lib/x86_64-linux-gnu', 'lib/aarch64-linux-gnu'];

/**
 * Lines of a shell that end a program with one line where this system's glibc is too old; `name` is the program's, for the
 * shell. Until 2.33 the version was in the name of the library, so this starts no process.
 */
export const glibcCheck = (
  name: string,
) => `for libc in ${FOLDERS.map((folder) => `/${folder}/libc-2.*.so`).join(' ')}; do
  minor=\${libc##*libc-2.}
  minor=\${minor%%.*}
  if [ -e "$libc" ] && [ "$minor" -lt ${OLDEST_MINOR} ]; then
    echo "${name}: glibc 2.${OLDEST_MINOR} or newer is needed; this is 2.$minor" >&2
    exit 1
  fi
done`;
