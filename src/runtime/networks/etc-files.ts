import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** Where a sandbox looks for its name servers and for names. */
const RESOLV_CONF = '/etc/resolv.conf';
const HOSTS = '/etc/hosts';

/** What a sandbox's own files for names say. */
export interface EtcContent {
  /** Its host name. */
  sandbox_id: string;
  name_servers: readonly string[];
  /** More lines of `resolv.conf`. */
  settings: readonly string[];
}

/** Writes a sandbox's own `resolv.conf` and `hosts` into `folder`, which is created. */
export function writeEtcFiles(folder: string, { sandbox_id, name_servers, settings }: EtcContent): void {
  const texts: [path: string, lines: string[]][] = [
    [RESOLV_CONF, [...name_servers.map((address) => `nameserver ${address}`), ...settings]],
    [HOSTS, ['127.0.0.1 localhost', '::1 localhost ip6-localhost ip6-loopback', `127.0.1.1 ${sandbox_id}`]],
  ];
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  for (const [path, lines] of texts)
    writeFileSync(join(folder, basename(path)), lines.map((line) => `${line}\n`).join(''), { mode: 0o644 });
}

/** The file in such a folder that a sandbox sees at `path`; null if that is no file of its own. */
export function ownEtcFile(folder: string | null, path: string): string | null {
  return folder !== null && [RESOLV_CONF, HOSTS].includes(path) ? join(folder, basename(path)) : null;
}
