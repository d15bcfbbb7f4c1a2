import { createSocket } from 'node:dgram';
import type { LookupAddress } from 'node:dns';
import { connect, isIPv6 } from 'node:net';
import { type Clock, runTime } from '../base/clock.ts';
import { kernelRandom } from '../base/entropy.ts';
import { readOutside } from '../base/linux/read-outside.ts';
import { type DnsAnswer, dnsAnswer, dnsQuestion, TYPE_A, TYPE_AAAA } from './dns-message.ts';
import { addressesInHosts, type Resolve } from './resolver.ts';
import { type NameServer, namesToAsk, parseResolverSettings } from './resolver-settings.ts';

/** The timeout of one question to one name server, and how often each is asked. */
const QUESTION_MS = 1_500;
const ROUNDS = 2;
/** How long what the files say is reused, in ms. */
const KEEP_MS = 5_000;
const FILE_MAX_BYTES = 1024 * 1024;
const LOCALHOST: LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/** Where the settings are. */
interface ResolverFiles {
  hosts: string;
  settings: string;
}

/**
 * Makes the daemon's resolver: hosts file, then name servers with the search domains of resolv.conf. The files may be on a
 * file system that hangs, and are read in a process of their own; the platform's ways to resolve read them, and others, in
 * threads of this one. Sources of names that only the C library knows (NSS) are not asked.
 */
export function makeDirectResolve(
  clock: Clock,
  files: ResolverFiles = { hosts: '/etc/hosts', settings: '/etc/resolv.conf' },
): Resolve {
  const kept = new Map<string, Promise<string>>();
  const textOf = (path: string): Promise<string> => {
    const known = kept.get(path);
    if (known !== undefined) return known;
    const read = readOutside(path, FILE_MAX_BYTES, clock).then(
      (bytes) => bytes?.toString('latin1') ?? '',
      (error) => {
        throw Object.assign(new Error(error.message), { code: 'EAI_AGAIN' });
      },
    );
    kept.set(path, read);
    clock.after(KEEP_MS, () => kept.delete(path));
    return read;
  };
  return async (hostname) => {
    const name = hostname.toLowerCase();
    const bare = name.replace(/\.$/, '');
    const known = addressesInHosts(bare, await textOf(files.hosts));
    if (known.length > 0) return known;
    if (bare === 'localhost' || bare.endsWith('.localhost')) return LOCALHOST;
    const settings = parseResolverSettings(await textOf(files.settings));
    let has_failed = false;
    for (const each of namesToAsk(name, settings)) {
      const answers = await Promise.all([
        ask(each, TYPE_A, settings.servers, clock),
        ask(each, TYPE_AAAA, settings.servers, clock),
      ]);
      const [four, six] = answers.map((answer) => answer?.addresses ?? []) as [string[], string[]];
      const found = [
        ...four.map((address) => ({ address, family: 4 })),
        ...six.map((address) => ({ address, family: 6 })),
      ];
      if (found.length > 0) return found;
      if (answers.some((answer) => answer?.state !== 'known')) has_failed = true;
    }
    throw Object.assign(new Error(`${bare} cannot be resolved`), {
      code: has_failed ? 'EAI_AGAIN' : 'ENOTFOUND',
      hostname: bare,
    });
  };
}

/** Asks one name server after the other until one knows; null if none does. */
async function ask(
  name: string,
  type: number,
  servers: readonly NameServer[],
  clock: Clock,
): Promise<DnsAnswer | null> {
  for (let round = 0; round < ROUNDS; round++) {
    for (const server of servers) {
      const question = dnsQuestion(kernelRandom(2).readUInt16BE(), name, type);
      if (!question) return { state: 'known', addresses: [], is_cut: false };
      const read = (message: Buffer) => dnsAnswer(message, question, name, type);
      let answer = await byDatagram(question, server, clock, read);
      if (answer?.is_cut) answer = (await byStream(question, server, clock, read)) ?? answer;
      if (answer?.state === 'known') return answer;
    }
  }
  return null;
}

type ReadAnswer = (message: Buffer) => DnsAnswer | null;

/** From a port of its own, so that an answer is hard to forge; what is none is passed over. */
function byDatagram(
  question: Buffer,
  { address, port }: NameServer,
  clock: Clock,
  read: ReadAnswer,
): Promise<DnsAnswer | null> {
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
    let is_over = false;
    const finish = (answer: DnsAnswer | null) => {
      if (is_over) return;
      is_over = true;
      limit.cancel();
      socket.close();
      resolve(answer);
    };
    const limit = runTime(clock).after(QUESTION_MS, () => finish(null));
    socket.on('error', () => finish(null));
    socket.on('message', (message) => {
      const answer = read(message);
      if (answer) finish(answer);
    });
    // A connected socket takes datagrams from this server alone. Its callback also gets the error of a connect that fails, as
    // without a route, which is then no event.
    const onConnect = (error?: Error) => {
      if (error) finish(null);
      else if (!is_over) socket.send(question, () => {});
    };
    socket.connect(port, address, onConnect);
  });
}

/** Over TCP a message has its length before it. */
function byStream(
  question: Buffer,
  { address, port }: NameServer,
  clock: Clock,
  read: ReadAnswer,
): Promise<DnsAnswer | null> {
  return new Promise((resolve) => {
    const socket = connect(port, address);
    let received = Buffer.alloc(0);
    const finish = (answer: DnsAnswer | null) => {
      limit.cancel();
      socket.destroy();
      resolve(answer);
    };
    const limit = runTime(clock).after(QUESTION_MS, () => finish(null));
    socket.on('error', () => finish(null));
    socket.on('close', () => finish(null));
    socket.on('data', (data) => {
      received = Buffer.concat([received, data]);
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return;
      finish(read(received.subarray(2, 2 + received.readUInt16BE(0))));
    });
    const length = Buffer.alloc(2);
    length.writeUInt16BE(question.length);
    socket.write(Buffer.concat([length, question]));
  });
}
