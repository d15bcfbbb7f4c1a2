import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { CONTROL_SCOPE_HEADER, type ControlScope } from '../contract/control-scopes.ts';

/** Whoever has taken the daemon over answers without an end. */
const ANSWER_MAX_BYTES = 4 * 1024 * 1024;
const INFORMATIONAL_MAX = 8;

/** What the daemon answered; or that nobody answered, or not in time. Nothing in `data` and `error` has been checked. */
export type DaemonResponse =
  | { outcome: 'answered'; status: number; data: unknown; error: unknown }
  | { outcome: 'unreachable'; reason: string };

interface DaemonRequest {
  method: string;
  /** Below `/api/v1`. */
  path: string;
  body?: object;
  /** From the first byte to the last; a pause or an end takes its time. */
  within_ms: number;
}

/** Asks a sandbox's daemon over its control socket. Source: contract section 4, "The local API". */
export async function requestDaemon(socket_path: string, request: DaemonRequest): Promise<DaemonResponse> {
  const { body, within_ms } = request;
  const outgoing = open(socket_path, request, AbortSignal.timeout(within_ms));
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
    outgoing.destroy();
  }
}

/** A sandbox that stands still as long as this is kept. */
export interface Hold {
  /** True until it is released, or the daemon is gone. */
  isKept(): boolean;
  /** Resolves when everything goes on. Idempotent. */
  release(): Promise<void>;
}

/** Holds a sandbox still; gives the daemon's refusal where it does not. */
export async function hold(socket_path: string, within_ms: number): Promise<Hold | DaemonResponse> {
  const giving_up = new AbortController();
  const outgoing = open(socket_path, { method: 'POST', path: '/sandbox/hold' }, giving_up.signal);
  outgoing.flushHeaders();
  const timer = AbortSignal.timeout(within_ms);
  timer.onabort = () => giving_up.abort();
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
    timer.onabort = null;
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
    // What it says does not matter: it says it when everything stands still.
    response.once('data', () => resolve());
    response.once('close', () => reject(new Error('the daemon has let go')));
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

/** An answer's envelope, whatever is in it; throws where it is none. */
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

/** Ends a request whose daemon announces an answer again and again. */
export function boundInterimAnswers(outgoing: ClientRequest): void {
  let seen = 0;
  outgoing.on('information', () => {
    seen += 1;
    if (seen > INFORMATIONAL_MAX) outgoing.destroy(new Error('too many interim answers'));
  });
}

function open(socketPath: string, { method, path }: { method: string; path: string }, signal: AbortSignal) {
  const scope: ControlScope = method === 'GET' ? 'read' : 'manage';
  const headers = { host: 'localhost', 'content-type': 'application/json', [CONTROL_SCOPE_HEADER]: scope };
  const outgoing = httpRequest({ socketPath, method, path: `/api/v1${path}`, headers, signal, agent: false });
  // Whoever waits for the answer is told by `head`; what comes later changes nothing.
  outgoing.on('error', () => {});
  boundInterimAnswers(outgoing);
  return outgoing;
}

function head(outgoing: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    outgoing.once('error', reject);
    // After a switch of protocols that nobody outgoing for no error follows.
    outgoing.once('upgrade', (_response, socket) => {
      socket.destroy();
      reject(new Error('the daemon speaks another protocol'));
    });
    outgoing.once('response', (response) => {
      response.on('error', () => {});
      resolve(response);
    });
  });
}
