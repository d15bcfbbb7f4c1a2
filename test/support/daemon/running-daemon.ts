import { readFileSync } from 'node:fs';
import { request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { onTestFinished, vi } from 'vitest';
import { parseOptions } from '../../../bin/sandboxd-options.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { createApp } from '../../../src/daemon/api/app.ts';
import { Daemon } from '../../../src/daemon/daemon.ts';
import { type Consumer, startConsumer } from '../consumer.ts';
import { scratchFolder } from '../scratch.ts';

vi.setConfig({ testTimeout: 60_000 });

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the daemon answers.
  json: any;
}

export interface Call {
  body?: string | Buffer;
  headers?: OutgoingHttpHeaders;
  /** Absent: the daemon's own. */
  token?: string | null;
}

export interface Running {
  daemon: Daemon;
  /** The control token. */
  token: string;
  state_dir: string;
  port: number;
  call(method: string, path: string, options?: Call): Promise<Answer>;
  publish(payload: string, headers?: OutgoingHttpHeaders): Promise<Answer>;
}

const log = createLog('silent');

/** A daemon in this process that is not started yet. */
export function createDaemon(state_dir: string, ...args: string[]): Daemon {
  const fixed = ['--port', '0', '--state-dir', state_dir, '--shutdown-grace-ms', '0'];
  return new Daemon({
    config: parseOptions(['node', 'sandboxd', ...fixed, ...args], undefined),
    log,
    clock: systemClock,
    environment: { PATH: process.env.PATH ?? '' },
    stdout: new PassThrough().resume(),
    createApp,
  });
}

/** A daemon in this process on real files and a real port; it has stopped when the test ends. */
export async function startDaemon(...args: string[]): Promise<Running> {
  const state_dir = join(scratchFolder(), 'state');
  const daemon = createDaemon(state_dir, ...args);
  onTestFinished(() => daemon.stop('signal', 'SIGTERM'));
  await daemon.start();
  const token = readFileSync(join(state_dir, 'control-token'), 'utf8').trim();
  const call = (method: string, path: string, options: Call = {}) => {
    const given = options.token === undefined ? token : options.token;
    return send(daemon.port, method, path, {
      ...options,
      headers: { ...(given === null ? {} : { authorization: `Bearer ${given}` }), ...options.headers },
    });
  };
  return {
    daemon,
    token,
    state_dir,
    port: daemon.port,
    call,
    publish: (payload, headers = {}) =>
      call('POST', '/api/v1/webhook/publish', {
        token: null,
        body: `{"payload":${payload}}`,
        headers: { 'content-type': 'application/json', ...headers },
      }),
  };
}

/** A daemon of the sandbox `sb-1`, with a consumer that accepts every delivery. */
export async function startDelivering(...args: string[]): Promise<Running & { consumer: Consumer }> {
  const consumer = await startConsumer();
  const running = await startDaemon('--webhook-url', consumer.url, '--sandbox-id', 'sb-1', ...args);
  return { consumer, ...running };
}

export function send(port: number, method: string, path: string, options: Call): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = {
      ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...options.headers,
    };
    const request = httpRequest({ host: '127.0.0.1', port, method, path, headers, agent: false });
    request.on('error', reject);
    request.on('response', async (response) => {
      const text = await textOf(response).catch(() => '');
      let json: unknown;
      try {
        json = JSON.parse(text);
      } catch {
        json = undefined;
      }
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json });
    });
    request.end(options.body);
  });
}
