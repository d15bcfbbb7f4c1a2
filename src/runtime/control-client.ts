import {
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import type { Socket } from 'node:net';
import { runTime, systemClock } from '../base/clock.ts';
import { connectRelayed } from '../base/http/relay.ts';
import { CONTROL_SCOPE_HEADER, type ControlScope } from '../contract/control-socket.ts';

/** A compromised daemon could answer without end. */
const ANSWER_MAX_BYTES = 4 * 1024 * 1024;
const INFORMATIONAL_MAX = 8;

/** Where a sandbox's daemon is: the path of its control socket, or what connects to it, half-open. */
export type DaemonAddress = string | (() => Promise<Socket>);

/** A new connection to a control socket; rejects with the system's error. */
export function connectControl(path: string): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connectRelayed({ path, allowHalfOpen: true });
  socket.on('error', reject).once('connect', () => resolve(socket));
  return promise;
}

/** How a request reaches a daemon: over a connection of its own. */
export function connecting(address: DaemonAddress): Pick<RequestOptions, 'createConnection'> {
  if (typeof address === 'string') {
    return { createConnection: () => connectRelayed({ path: address, allowHalfOpen: true }) };
  }
  return {
    createConnection(_options, onMade) {
      address().then(
        (socket) => onMade(null, socket),
        (error) => onMade(error, null as never),
      );
      return undefined;
    },
  };
}

/** The daemon's answer, or why there is none in time. Nothing in `data` and `error` has been validated. */
export type DaemonResponse =
  | { outcome: 'answered'; status: number; data: unknown; error: unknown }
  | { outcome: 'unreachable'; reason: string };

interface DaemonRequest {
  method: string;
  /** Below `/api/v1`, or with `is_at_root` below the root. */
  path: string;
  is_at_root?: true;
  /** What it may reach: for GET `read` unless it says otherwise. */
  scope?: ControlScope;
  body?: object;
  /** The timeout in ms for the whole exchange. */
  within_ms: number;
}

/** Sends one request to a sandbox's daemon over its control socket. Never rejects. Source: contract section 4, "The local API". */
export async function requestDaemon(address: DaemonAddress, request: DaemonRequest): Promise<DaemonResponse> {
  const { body, within_ms } = request;
  const over = new AbortController();
  const limit = runTime(systemClock).after(within_ms, () => over.abort());
  const outgoing = open(address, request, over.signal);
  try {
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    const response = await head(outgoing);
    const { data, error = null } = await envelope(response);
    return { outcome: 'answered', status: response.statusCode ?? 0, data, error };
  } catch (error) {
    return {
      outcome: 'unreachable',
      reason: (error as NodeJS.ErrnoException).code ?? (error as Error).message,
    };
  } finally {
    limit.cancel();
    outgoing.destroy();
  }
}

/** Keeps a sandbox quiescent until it is released. */
export interface Hold {
  /** True until it is released or the daemon is gone. */
  isKept(): boolean;
  /** Resolves when the sandbox runs again. Idempotent. */
  release(): Promise<void>;
}

/** Quiesces a sandbox within `within_ms`; resolves with the daemon's answer if it refuses. Never rejects. */
export async function hold(address: DaemonAddress, within_ms: number): Promise<Hold | DaemonResponse> {
  const giving_up = new AbortController();
  const outgoing = open(address, { method: 'POST', path: '/sandbox/hold' }, giving_up.signal);
  outgoing.flushHeaders();
  const limit = runTime(systemClock).after(within_ms, () => giving_up.abort());
  try {
    const response = await head(outgoing);
    if (response.statusCode !== 200) {
      const { error = null } = await envelope(response);
      outgoing.destroy();
      return { outcome: 'answered', status: response.statusCode ?? 0, data: null, error };
    }
    return await held(outgoing, response);
  } catch (error) {
    outgoing.destroy();
    return { outcome: 'unreachable', reason: (error as Error).message };
  } finally {
    limit.cancel();
  }
}

async function held(outgoing: ClientRequest, response: IncomingMessage): Promise<Hold> {
  let is_kept = true;
  const over = new Promise<void>((resolve) => {
    response.once('close', () => {
      is_kept = false;
      resolve();
    });
  });
  await new Promise<void>((resolve, reject) => {
    // The first byte means that everything is quiescent, whatever it is.
    response.once('data', () => resolve());
    response.once('close', () => reject(new Error('the daemon closed the connection')));
  });
  return {
    isKept: () => is_kept,
    async release() {
      is_kept = false;
      if (!outgoing.writableEnded) outgoing.end();
      await over;
    },
  };
}

/** The JSON object of an answer; throws if it is too long or no JSON. */
async function envelope(response: IncomingMessage): Promise<{ data?: unknown; error?: unknown }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > ANSWER_MAX_BYTES) throw new Error('the answer is too long');
    chunks.push(chunk);
  }
  const parsed: unknown = JSON.parse(Buffer.concat(chunks).toString());
  return typeof parsed === 'object' && parsed !== null ? parsed : {};
}

/** Destroys a request that receives too many informational answers (1xx). */
export function boundInterimAnswers(outgoing: ClientRequest): void {
  let seen = 0;
  outgoing.on('information', () => {
    seen += 1;
    if (seen > INFORMATIONAL_MAX) outgoing.destroy(new Error('too many informational (1xx) answers'));
  });
}

function open(address: DaemonAddress, request: Omit<DaemonRequest, 'within_ms'>, signal: AbortSignal) {
  const { method, path, is_at_root, scope = method === 'GET' ? 'read' : 'manage' } = request;
  const headers = { host: 'localhost', 'content-type': 'application/json', [CONTROL_SCOPE_HEADER]: scope };
  const outgoing = httpRequest({
    ...connecting(address),
    method,
    path: is_at_root ? path : `/api/v1${path}`,
    headers,
    signal,
  });
  // `head` reports errors before the answer; later ones change nothing.
  outgoing.on('error', () => {});
  boundInterimAnswers(outgoing);
  return outgoing;
}

function head(outgoing: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    outgoing.once('error', reject);
    // No error follows an unrequested switch of protocols.
    outgoing.once('upgrade', (_response, socket) => {
      socket.destroy();
      reject(new Error('the daemon switched protocols'));
    });
    outgoing.once('response', (response) => {
      response.on('error', () => {});
      resolve(response);
    });
  });
}
