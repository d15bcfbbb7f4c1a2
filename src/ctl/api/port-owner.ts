import { readFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';

/** A TCP socket of this machine that listens. */
export interface Listener {
  /** As `/proc/net/tcp` spells it: 8 or 32 hex digits. */
  address: string;
  uid: number;
  inode: string;
}

const LISTENING = '0A';
const ANY = /^0+$/;
const MAPPED_IPV4 = `${'0'.repeat(16)}FFFF0000`;

/** The sockets that listen on a port, as the kernel tells it. Source: proc_net_tcp(5). */
export function listenersOn(port: number): Listener[] {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) => {
    const rows = read(table).trim().split('\n').slice(1);
    return rows.flatMap((row) => {
      const columns = row.trim().split(/\s+/);
      const [address = '', local_port] = columns[1]?.split(':') ?? [];
      if (columns[3] !== LISTENING || local_port !== hex) return [];
      return [{ address, uid: Number(columns[7]), inode: columns[9] ?? '' }];
    });
  });
}

/** Those that take the connections to an address: who has the address itself comes before who has all of them. */
export function takersOf(remote_address: string, listeners: Listener[]): Listener[] {
  const spelled = spellings(remote_address);
  const exact = listeners.filter(({ address }) => spelled.includes(address));
  return exact.length > 0 ? exact : listeners.filter(({ address }) => ANY.test(address));
}

/** An address as the kernel's tables have it: words of 32 bits, each with its least significant byte first. */
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
