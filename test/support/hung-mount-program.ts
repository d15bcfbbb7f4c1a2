import { openSync, read, writeSync } from 'node:fs';
import { execaSync } from 'execa';

/**
 * A server of a FUSE file system, in a process of its own: it serves the files that its arguments describe, and on `hang`
 * it goes on to read requests and answers none, until `answer`. Source: fuse(4), <linux/fuse.h>.
 */

/** A file that is served, by its path in the mount; directories are made as needed. */
export interface ServedFile {
  text: string;
  mode: number;
}

/** What its parent sends, and how many requests wait, which it answers with. */
export type MountOrder = 'hang' | 'answer' | 'count';

const [path = '', described = '{}'] = process.argv.slice(2);

interface Node {
  id: bigint;
  mode: number;
  content: Buffer;
  names: Map<string, Node>;
}

const LOOKUP = 1;
const GETATTR = 3;
const OPEN = 14;
const READ = 15;
const STATFS = 17;
const RELEASE = 18;
const FLUSH = 25;
const INIT = 26;
const OPENDIR = 27;
const READDIR = 28;
const RELEASEDIR = 29;
/** FORGET, INTERRUPT and BATCH_FORGET, which have no answer. */
const UNANSWERED = new Set([2, 36, 42]);
/** Nobody waits for these. */
const UNAWAITED = new Set([RELEASE, RELEASEDIR]);
/** Names of one directory are looked up at once. */
const PARALLEL_DIROPS = 1 << 18;
const ENOENT = -2;
const ENOSYS = -38;
const HEADER_BYTES = 40;
const REQUEST_MAX_BYTES = 1024 * 1024 + 4096;
const DIRECTORY = 0o40000;

const nodes: Node[] = [];

function add(mode: number, content = Buffer.alloc(0)): Node {
  const node = { id: BigInt(nodes.length + 1), mode, content, names: new Map() };
  nodes.push(node);
  return node;
}

const root = add(DIRECTORY | 0o755);
for (const [name, { text, mode }] of Object.entries(JSON.parse(described) as Record<string, ServedFile>)) {
  const parts = name.split('/');
  const last = parts.pop() as string;
  let folder = root;
  for (const part of parts) {
    const next: Node = folder.names.get(part) ?? add(DIRECTORY | 0o755);
    folder.names.set(part, next);
    folder = next;
  }
  folder.names.set(last, mode === 0 ? add(DIRECTORY | 0o755) : add(0o100000 | mode, Buffer.from(text)));
}

function attributes({ id, mode, content }: Node): Buffer {
  const out = Buffer.alloc(88);
  out.writeBigUInt64LE(id, 0);
  out.writeBigUInt64LE(BigInt(content.length), 8);
  out.writeUInt32LE(mode, 60);
  out.writeUInt32LE(1, 64);
  out.writeUInt32LE(4096, 80);
  return out;
}

function entries({ names }: Node, offset: number, size: number): Buffer {
  const all = [...names].slice(offset).map(([name, { id, mode }], index) => {
    const out = Buffer.alloc(24 + Math.ceil(Buffer.byteLength(name) / 8) * 8);
    out.writeBigUInt64LE(id, 0);
    out.writeBigUInt64LE(BigInt(offset + index + 1), 8);
    out.writeUInt32LE(Buffer.byteLength(name), 16);
    out.writeUInt32LE(mode >> 12, 20);
    out.write(name, 24);
    return out;
  });
  return Buffer.concat(all).subarray(0, size);
}

/** The answer to a request: its error, or its content. Nothing is kept by the kernel, so that each use asks again. */
function answerTo(opcode: number, node: Node, body: Buffer): number | Buffer {
  switch (opcode) {
    case INIT: {
      const out = Buffer.alloc(64);
      out.writeUInt32LE(7, 0);
      out.writeUInt32LE(31, 4);
      out.writeUInt32LE(65_536, 8);
      out.writeUInt32LE(PARALLEL_DIROPS, 12);
      out.writeUInt32LE(65_536, 20);
      return out;
    }
    case LOOKUP: {
      const found = node.names.get(body.toString('utf8', 0, body.indexOf(0)));
      if (!found) return ENOENT;
      const out = Buffer.alloc(40);
      out.writeBigUInt64LE(found.id, 0);
      return Buffer.concat([out, attributes(found)]);
    }
    case GETATTR:
      return Buffer.concat([Buffer.alloc(16), attributes(node)]);
    case OPEN:
    case OPENDIR:
      return Buffer.alloc(16);
    case READ: {
      const offset = Number(body.readBigUInt64LE(8));
      return node.content.subarray(offset, offset + body.readUInt32LE(16));
    }
    case READDIR:
      return entries(node, Number(body.readBigUInt64LE(8)), body.readUInt32LE(16));
    case STATFS:
      return Buffer.alloc(80);
    case FLUSH:
    case RELEASE:
    case RELEASEDIR:
      return 0;
    default:
      return ENOSYS;
  }
}

const device = openSync('/dev/fuse', 'r+');
let waiting: Buffer[] | null = null;

function answer(request: Buffer): void {
  const opcode = request.readUInt32LE(4);
  if (UNANSWERED.has(opcode)) return;
  const node = nodes[Number(request.readBigUInt64LE(16)) - 1] ?? root;
  const result = answerTo(opcode, node, request.subarray(HEADER_BYTES));
  const body = typeof result === 'number' ? Buffer.alloc(0) : result;
  const header = Buffer.alloc(16);
  header.writeUInt32LE(16 + body.length, 0);
  header.writeInt32LE(typeof result === 'number' ? result : 0, 4);
  header.writeBigUInt64LE(request.readBigUInt64LE(8), 8);
  try {
    writeSync(device, Buffer.concat([header, body]));
  } catch {} // the one that asked has gone
}

function readNext(): void {
  const buffer = Buffer.allocUnsafe(REQUEST_MAX_BYTES);
  read(device, buffer, 0, buffer.length, null, (error, length) => {
    if (error?.code === 'ENODEV') process.exit();
    if (!error) {
      const request = Buffer.from(buffer.subarray(0, length));
      // Until its first request is answered, the kernel sends no other, and lets those who wait be killed.
      if (waiting === null || request.readUInt32LE(4) === INIT) answer(request);
      else if (!UNANSWERED.has(request.readUInt32LE(4))) waiting.push(request);
    }
    readNext();
  });
}

const options = `fd=0,rootmode=40000,user_id=0,group_id=0,allow_other`;
execaSync('mount', ['-i', '-t', 'fuse', 'hung', path, '-o', options], {
  stdin: device as 3, // of descriptors execa's types know the first ten
});
process.on('message', (order: MountOrder) => {
  if (order === 'hang') waiting ??= [];
  if (order === 'answer') {
    const all = waiting ?? [];
    waiting = null;
    for (const request of all) answer(request);
  }
  const awaited = (waiting ?? []).filter((request) => !UNAWAITED.has(request.readUInt32LE(4)));
  process.send?.(awaited.length);
});
process.on('disconnect', () => process.exit());
readNext();
process.send?.(0);
