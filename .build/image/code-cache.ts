import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Where a cache holds the hash of the flags that it was made with, in bytes. */
const FLAG_HASH_AT = 12;
const FLAG_HASH_BYTES = 4;
/** Prints it for this engine without flags. */
const TELL_FLAG_HASH = `process.stdout.write(new vm.Script('0').createCachedData().toString('hex', ${FLAG_HASH_AT}, ${FLAG_HASH_AT + FLAG_HASH_BYTES}))`;

/**
 * So that the same program gives the same cache: hashes from one seed, nothing forgotten, nothing optimised. They are
 * no part of what a cache depends on, so it is marked as made without them.
 */
const REPRODUCIBLE = [
  '--hash-seed=1',
  '--random-seed=1',
  '--no-flush-bytecode',
  '--no-opt',
  '--no-maglev',
  '--no-sparkplug',
];

/** What a recorded run of the daemon is asked, after its first delivery. */
const ASKED = ['/healthz', '/readyz'];

/**
 * Keeps beside each part of the programs what the compiler makes of the functions that a start needs. The daemon is
 * run once for it, from its start to its first delivery and its first answers.
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
  execFileSync(node, [...REPRODUCIBLE, program('normalise-cache'), folder]);
  const flag_hash = Buffer.from(execFileSync(node, ['-e', TELL_FLAG_HASH], { encoding: 'utf8' }), 'hex');
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
    // One thread at a time for files: functions are compiled in the same order, which their caches hold.
    env: { PATH: process.env.PATH, UV_THREADPOOL_SIZE: '1' },
  });
  const ended = once(child, 'exit');
  const said: string[] = [];
  let url = '';
  const lines = createInterface({ input: child.stderr as NodeJS.ReadableStream });
  lines.on('line', (line) => {
    said.push(line);
    const told = line.startsWith('{') ? JSON.parse(line) : {};
    if (told.msg === 'listening') url = told.url;
    if (told.msg === 'ready') void finish(child, url, received);
  });
  const [code] = await ended;
  if (code !== 0) throw new Error(`the code caches were not made: ${said.join('\n')}`);
}

async function finish(child: ChildProcess, url: string, received: Promise<void>): Promise<void> {
  await received;
  for (const path of ASKED) await ask(url + path);
  child.send('write');
}

function ask(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = get(url, { agent: false }, (response) => response.resume().on('end', resolve));
    asked.on('error', reject);
  });
}
