import { statfsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';

/** What a file system is, as far as durability and watching are concerned. */
export interface FileSystem {
  /** As mount(8) names it, such as `nfs`. */
  name: string;
  /**
   * `memory`: lost on reboot. `remote`: it changes without this kernel seeing it, and its server decides what a sync
   * means. `pseudo`: its files are the kernel's own tables, made at each observation.
   */
  kind: 'disk' | 'memory' | 'remote' | 'pseudo';
}

/** Names by the magic number that statfs(2) returns, from <linux/magic.h>. */
const NAMES: Record<FileSystem['kind'], Record<number, string>> = {
  disk: {
    61267: 'ext4',
    1481003842: 'xfs',
    2435016766: 'btrfs',
    2035054128: 'overlay',
    801189825: 'zfs',
  },
  memory: {
    16914836: 'tmpfs',
    2240043254: 'ramfs',
  },
  remote: {
    26985: 'nfs',
    16914839: '9p',
    1702057286: 'fuse',
    4283649346: 'cifs',
    4266872130: 'smb2',
    20859: 'smb',
    12805120: 'ceph',
    1397113167: 'afs',
    1937076805: 'coda',
    198183888: 'lustre',
    18225520: 'gfs2',
    1952539503: 'ocfs2',
    2020557398: 'vboxsf',
  },
  pseudo: {
    40864: 'proc',
    1650812274: 'sysfs',
    2613483: 'cgroup',
    1667723888: 'cgroup2',
    7377: 'devpts',
    1684170528: 'debugfs',
    1953653091: 'tracefs',
    1935894131: 'securityfs',
    3405662737: 'bpf',
    1650812272: 'configfs',
    3730735588: 'efivarfs',
    1634035564: 'pstore',
    427819522: 'mqueue',
    1853056627: 'nsfs',
    1112100429: 'binfmt_misc',
    4185718668: 'selinuxfs',
    1128357203: 'smackfs',
    1513908720: 'apparmorfs',
    124082209: 'resctrl',
    1702057283: 'fusectl',
    1733912937: 'rpc_pipefs',
    1852207972: 'nfsd',
    1819242352: 'binderfs',
    2881100148: 'xenfs',
  },
};

const KNOWN = new Map(
  (Object.keys(NAMES) as FileSystem['kind'][]).flatMap((kind) =>
    Object.entries(NAMES[kind]).map(([magic, name]) => [Number(magic), { name, kind }] as const),
  ),
);

/** The file system that a path is on; one that is not known is taken for a disk. Throws the system's error. */
export function fileSystemOf(path: string | Buffer): FileSystem {
  return named(statfsSync(path).type);
}

/** Like `fileSystemOf`, without waiting in this thread. */
export async function fileSystemAt(path: string | Buffer): Promise<FileSystem> {
  return named((await statfs(path)).type);
}

function named(type: number): FileSystem {
  const magic = type >>> 0;
  return KNOWN.get(magic) ?? { name: `file system 0x${magic.toString(16)}`, kind: 'disk' };
}
