import { statfsSync } from 'node:fs';
import { systemPath } from './index/name.ts';

/** A file system that the kernel's signals do not cover. */
export interface FileSystem {
  /** `remote`: it changes without this kernel seeing it. `tables`: its files are the kernel's own tables, made at each observation. */
  kind: 'remote' | 'pseudo';
  /** As mount(8) names it, such as `nfs`. */
  name: string;
}

/** Names by the magic number that statfs returns: <linux/magic.h>. */
const REMOTE: Record<number, string> = {
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
};

const PSEUDO: Record<number, string> = {
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
};

/** The file system of a directory, whose path is in internal form; null if it is an ordinary local one or unknown. */
export function fileSystemOf(path: string): FileSystem | null {
  try {
    const magic = statfsSync(systemPath(path)).type >>> 0;
    const remote = REMOTE[magic];
    if (remote !== undefined) return { kind: 'remote', name: remote };
    const pseudo = PSEUDO[magic];
    return pseudo === undefined ? null : { kind: 'pseudo', name: pseudo };
  } catch {
    return null;
  }
}
