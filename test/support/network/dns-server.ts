import { createSocket } from 'node:dgram';
import { createServer, isIPv6 } from 'node:net';

/**
 * A name server for tests: every name has both addresses. Arguments: where to listen, the addresses of IPv4 and IPv6.
 * Names that begin with `long` are answered over TCP alone. Writes a line when it listens.
 */
const [host = '', ipv4 = '', ipv6 = ''] = process.argv.slice(2);
const PORT = 53;
const TYPE_A = 1;
const TYPE_AAAA = 28;
const HEADER_BYTES = 12;

function addressBytes(type: number): Buffer | null {
  if (type === TYPE_A) return Buffer.from(ipv4.split('.').map(Number));
  if (type !== TYPE_AAAA) return null;
  const [head = [], tail = []] = ipv6.split('::').map((part) => part.split(':').filter(Boolean));
  const groups = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex');
}

function answer(query: Buffer, is_datagram: boolean): Buffer {
  let end = HEADER_BYTES;
  while (query[end]) end += (query[end] ?? 0) + 1;
  const question = query.subarray(HEADER_BYTES, end + 5);
  const bytes = addressBytes(query.readUInt16BE(end + 1));
  const is_cut = is_datagram && question.toString('latin1', 1, 5) === 'long';
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(query.readUInt16BE(0), 0);
  header.writeUInt16BE(is_cut ? 0x8380 : 0x8180, 2);
  header.writeUInt16BE(1, 4);
  if (is_cut || !bytes) return Buffer.concat([header, question]);
  header.writeUInt16BE(1, 6);
  // The name of the question, its type, the class of the Internet, a minute to live.
  const record = Buffer.from([0xc0, 12, 0, query[end + 2] ?? 0, 0, 1, 0, 0, 0, 60, 0, bytes.length]);
  return Buffer.concat([header, question, record, bytes]);
}

const udp = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
udp.on('message', (query, { port, address }) => udp.send(answer(query, true), port, address));
const tcp = createServer((socket) => {
  socket.on('error', () => socket.destroy());
  socket.once('data', (query) => {
    const reply = answer(query.subarray(2), false);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(reply.length);
    socket.end(Buffer.concat([length, reply]));
  });
});
udp.bind(PORT, host, () => tcp.listen(PORT, host, () => console.log('{}')));
