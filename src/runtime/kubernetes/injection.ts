import type { InjectionOption, SandboxTemplate } from '../../contract/templates.ts';

/**
 * How the daemon's program gets into a sandbox.
 * - `image-volume`: the product's image is mounted; nothing is copied
 * - `init-container`: it is copied from that image into the Pod, on clusters that cannot mount images
 */
export type Injection = Exclude<InjectionOption, 'auto'>;

/** What is taken for an option until the cluster has said what it allows. */
export function knownInjection(option: InjectionOption): Injection {
  return option === 'init-container' ? option : 'image-volume';
}

/**
 * Where the program is in the sandbox, read-only. A mount point cannot be renamed, and the folder above this one is the root:
 * beneath any other folder, a user of the sandbox who owns that could move it away and put parts of its own in its place.
 */
export const PROGRAM_MOUNT_DIR = '/.sandboxd';

/** Where the programs are in the product's image. */
export const LIBRARY = '/usr/local/lib/sandboxd';
const COMMANDS = '/usr/local/bin';
const VOLUME = 'program';
/** What the copy may take, in MiB: about 115, twice. */
const COPY_MAX_MIB = 256;

/** The group that may read Node in the product's image (`fixtures/deploy/sandbox.Dockerfile`), which nobody in a sandbox is in. */
const READERS = 65_500;
/** Who copies the program and owns the copy: nobody in a sandbox, and not the same as in one. */
const COPIERS = [65_501, 65_502] as const;

/**
 * Copies the program as it is in the image. In the copy as well, Node can be executed but not read: the kernel then keeps the
 * daemon's memory from other processes of its user.
 */
const COPY = `set -eu
umask 022
cd ${PROGRAM_MOUNT_DIR}
[ -r ${LIBRARY}/node ] || { echo "${LIBRARY}/node of this image cannot be read by group ${READERS}: build it with sandbox.Dockerfile" >&2; exit 1; }
mkdir -p .${LIBRARY} .${COMMANDS}
cp ${LIBRARY}/* .${LIBRARY}/
cp ${COMMANDS}/sandboxd ${COMMANDS}/sandboxctl .${COMMANDS}/
chmod 0111 .${LIBRARY}/node`;

/** What brings the program into a Pod: its volume, the container that fills it, and what both take of the node's disk, in MiB. */
export function programParts(
  injection: Injection,
  { user }: Pick<SandboxTemplate, 'user'>,
  container: { image: string; resources: object; securityContext: object },
): { volume: object; ephemeral_mib: number; initContainers?: object[] } {
  const { image, resources, securityContext } = container;
  if (injection === 'image-volume') {
    return { volume: { name: VOLUME, image: { reference: image } }, ephemeral_mib: 0 };
  }
  const copier = COPIERS.find((id) => id !== user);
  const copies = {
    name: VOLUME,
    image,
    resources,
    command: ['/bin/sh', '-c', COPY],
    terminationMessagePolicy: 'FallbackToLogsOnError',
    securityContext: {
      ...securityContext,
      readOnlyRootFilesystem: true,
      runAsUser: copier,
      runAsGroup: READERS,
      runAsNonRoot: true,
    },
    volumeMounts: [{ name: VOLUME, mountPath: PROGRAM_MOUNT_DIR }],
  };
  const volume = { name: VOLUME, emptyDir: { sizeLimit: `${COPY_MAX_MIB}Mi` } };
  return { volume, ephemeral_mib: COPY_MAX_MIB, initContainers: [copies] };
}

/** Where the sandbox sees the program. */
export const PROGRAM_MOUNT = { name: VOLUME, mountPath: PROGRAM_MOUNT_DIR, readOnly: true };
