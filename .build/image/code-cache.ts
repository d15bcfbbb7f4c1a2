import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { REPRODUCIBLE } from '../../src/base/engine/recorded-code.ts';
import { cachePath, wrapped } from './loader.ts';

/** Where a cache keeps the hash of the V8 flags it was made with: offset and length in bytes. */
const FLAG_HASH_AT = 12;
const FLAG_HASH_BYTES = 4;
/** A script that prints this hash for an engine without flags. */
const PRINT_FLAG_HASH = `process.stdout.write(new vm.Script('0').createCachedData().toString('hex', ${FLAG_HASH_AT}, ${FLAG_HASH_AT + FLAG_HASH_BYTES}))`;

/**
 * A script that rewrites recorded caches, and makes those of parts that were not loaded, as compiled without running them:
 * in a program that does nothing else, where their content depends on nothing that takes time. On stdin each part's `name`,
 * `source` and the path of its `cache`. A recorded cache numbers functions in the order of their first call, which varies;
 * a rewritten one numbers them in the order in which they are stored. It is run as a text: of a file, Node compiles functions
 * of its own that depend on the file's path, and they are numbered too.
 */
const NORMALISE = `
for (const { name, source, cache } of JSON.parse(fs.readFileSync(0, 'utf8'))) {
  const made = () => new vm.Script(source, { filename: name }).createCachedData();
  const cachedData = fs.existsSync(cache) ? fs.readFileSync(cache) : made();
  const script = new vm.Script(source, { filename: name, cachedData });
  if (script.cachedDataRejected) throw new Error('the cache of ' + name + ' does not fit');
  fs.writeFileSync(cache, script.createCachedData());
}`;

/** Routes that are requested of the recorded daemon after its first delivery. */
const REQUESTED = ['/healthz', '/readyz'];

/**
 * Writes a V8 code cache beside each part of the programs in `folder`, with the functions that a start uses. For that it
 * runs the daemon once with this `node`, from its start to its first delivery and its first answers.
 */
export async function writeCodeCaches(folder: string, node: string): Promise<void> {
  const state = mkdtempSync(join(tmpdir(), 'sandboxd-image-'));
  const received = Promise.withResolvers<void>();
  const receiver = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(204).end(received.resolve));
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const webhook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  try {
    await record(
      folder,
      node,
      ['--state-dir', state, '--port', '0', '--webhook-url', webhook],
      received.promise,
    );
  } finally {
    receiver.close();
    receiver.closeAllConnections();
    rmSync(state, { recursive: true });
  }
  const parts = readdirSync(folder).filter((name) => /\..*\.cjs$/.test(name));
  const input = parts.map((name) => {
    const path = join(folder, name);
    return { name, source: wrapped(path), cache: cachePath(path) };
  });
  execFileSync(node, [...REPRODUCIBLE, '-e', NORMALISE], { cwd: '/', env: {}, input: JSON.stringify(input) });
  // What a cache holds does not depend on the flags above: it is marked as made without any.
  const flag_hash = Buffer.from(execFileSync(node, ['-e', PRINT_FLAG_HASH], { encoding: 'utf8' }), 'hex');
  for (const name of readdirSync(folder).filter((each) => each.endsWith('.cache'))) {
    const cache = readFileSync(join(folder, name));
    flag_hash.copy(cache, FLAG_HASH_AT);
    writeFileSync(join(folder, name), cache);
  }
}

function program(name: string): string {
  return fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
}

async function record(folder: string, node: string, args: string[], received: Promise<void>): Promise<void> {
  const child = spawn(node, [...REPRODUCIBLE, program('record-cache'), folder, ...args], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    // One thread for files, so that functions are always compiled in the same order, which caches keep.
    env: { PATH: process.env.PATH, UV_THREADPOOL_SIZE: '1' },
  });
  const ended = once(child, 'exit');
  const log_lines: string[] = [];
  let url = '';
  const lines = createInterface({ input: child.stderr as NodeJS.ReadableStream });
  lines.on('line', (line) => {
    log_lines.push(line);
    const entry = line.startsWith('{') ? JSON.parse(line) : {};
    if (entry.msg === 'listening') url = entry.url;
    if (entry.msg === 'ready') void finish(child, url, received);
  });
  const [code] = await ended;
  if (code !== 0) throw new Error(`writing the code caches failed: ${log_lines.join('\n')}`);
}

async function finish(child: ChildProcess, url: string, received: Promise<void>): Promise<void> {
  await received;
  for (const path of REQUESTED) await fetchOnce(url + path);
  child.send('write');
}

function fetchOnce(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false }, (response) => response.resume().on('end', resolve));
    request.on('error', reject);
  });
}
