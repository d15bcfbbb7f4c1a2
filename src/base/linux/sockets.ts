import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { isIPv4 } from 'node:net';

/** A listening TCP socket of this machine. */
export interface Listener {
  /** As in `/proc/net/tcp`: 8 or 32 hex digits. */
  address: string;
  /** The user who opened it. */
  uid: number;
  inode: string;
}

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];
const LISTENING = '0A';
/** A row of a listening socket: its number, its own address and port, that of its peer, and its state. */
const LISTENING_ROW = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A /gm;
const ANY = /^0+$/;
const MAPPED_IPV4 = `${'0'.repeat(16)}FFFF0000`;

/** The sockets that listen on a port of this network namespace; see proc_pid_net(5). A table that cannot be read has none. */
export async function listenersOn(port: number): Promise<Listener[]> {
  const tables = await Promise.all(TABLES.map((table) => readFile(table, 'latin1').catch(() => '')));
  return tables.flatMap((table) => listenersIn(table, port));
}

/** The ports of this network namespace on which something listens. */
export async function listeningPorts(): Promise<Set<number>> {
  const ports = new Set<number>();
  for (const table of TABLES) {
    const text = await readFile(table, 'latin1').catch(() => '');
    for (const [, port = ''] of text.matchAll(LISTENING_ROW)) ports.add(Number.parseInt(port, 16));
  }
  return ports;
}

/** Like `listenersOn`, but synchronous: what is seen is the state at the time of the call. */
export function listenersNowOn(port: number): Listener[] {
  return TABLES.flatMap((table) => listenersIn(read(table), port));
}

function listenersIn(table: string, port: number): Listener[] {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const rows = table.trim().split('\n').slice(1);
  return rows.flatMap((row) => {
    const columns = row.trim().split(/\s+/);
    const [address = '', local_port] = columns[1]?.split(':') ?? [];
    if (columns[3] !== LISTENING || local_port !== hex) return [];
    return [{ address, uid: Number(columns[7]), inode: columns[9] ?? '' }];
  });
}

/** The listeners that get connections to an address: those bound to it come before those bound to all addresses. */
export function takersOf(remote_address: string, listeners: Listener[]): Listener[] {
  const spelled = spellings(remote_address);
  const exact = listeners.filter(({ address }) => spelled.includes(address));
  return exact.length > 0 ? exact : listeners.filter(({ address }) => ANY.test(address));
}

/** An address as the kernel writes it: 32-bit words, each with its least significant byte first. */
function spellings(address: string): string[] {
  const four = address.replace(/^::ffff:/i, '');
  if (isIPv4(four)) {
    const word = four
      .split('.')
      .reverse()
      .map((part) => Number(part).toString(16).padStart(2, '0'))
      .join('')
      .toUpperCase();
    return [word, MAPPED_IPV4 + word];
  }
  const [head = [], tail = []] = address
    .split('::')
    .map((part) => part.split(':').filter((group) => group !== ''));
  const groups = [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail];
  const digits = groups.map((group) => group.padStart(4, '0')).join('');
  const words = digits.match(/.{8}/g) ?? [];
  return [
    words
      .map((word) => (word.match(/../g) ?? []).reverse().join(''))
      .join('')
      .toUpperCase(),
  ];
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
