import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { CONTROL_SCOPE_HEADER, type ControlScope } from '../contract/control-scopes.ts';

/** Whoever has taken the daemon over answers without an end. */
const ANSWER_MAX_BYTES = 4 * 1024 * 1024;
const INFORMATIONAL_MAX = 8;

/** What the daemon answered; or that nobody answered, or not in time. Nothing in `data` and `error` has been checked. */
export type Answer =
  | { outcome: 'answered'; status: number; data: unknown; error: unknown }
  | { outcome: 'unreachable'; reason: string };

interface Question {
  method: string;
  /** Below `/api/v1`. */
  path: string;
  body?: object;
  /** From the first byte to the last; a pause or an end takes its time. */
  within_ms: number;
}

/** Asks a sandbox's daemon over its control socket. Source: contract section 4, "The local API". */
export async function ask(socket_path: string, question: Question): Promise<Answer> {
  const { body, within_ms } = question;
  const asked = open(socket_path, question, AbortSignal.timeout(within_ms));
  try {
    asked.end(body === undefined ? undefined : JSON.stringify(body));
    const response = await head(asked);
    const { data, error = null } = await envelope(response);
    return { outcome: 'answered', status: response.statusCode ?? 0, data, error };
  } catch (error) {
    return {
      outcome: 'unreachable',
      reason: (error as NodeJS.ErrnoException).code ?? (error as Error).message,
    };
  } finally {
    asked.destroy();
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
export async function hold(socket_path: string, within_ms: number): Promise<Hold | Answer> {
  const giving_up = new AbortController();
  const asked = open(socket_path, { method: 'POST', path: '/sandbox/hold' }, giving_up.signal);
  asked.flushHeaders();
  const timer = AbortSignal.timeout(within_ms);
  timer.onabort = () => giving_up.abort();
  try {
    const response = await head(asked);
    if (response.statusCode !== 200) {
      const { error = null } = await envelope(response);
      asked.destroy();
      return { outcome: 'answered', status: response.statusCode ?? 0, data: null, error };
    }
    return await held(asked, response);
  } catch (error) {
    asked.destroy();
    return { outcome: 'unreachable', reason: (error as Error).message };
  } finally {
    timer.onabort = null;
  }
}

async function held(asked: ClientRequest, response: IncomingMessage): Promise<Hold> {
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
      if (!asked.writableEnded) asked.end();
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
export function boundInterimAnswers(asked: ClientRequest): void {
  let seen = 0;
  asked.on('information', () => {
    seen += 1;
    if (seen > INFORMATIONAL_MAX) asked.destroy(new Error('too many interim answers'));
  });
}

function open(socketPath: string, { method, path }: { method: string; path: string }, signal: AbortSignal) {
  const scope: ControlScope = method === 'GET' ? 'read' : 'manage';
  const headers = { host: 'localhost', 'content-type': 'application/json', [CONTROL_SCOPE_HEADER]: scope };
  const asked = request({ socketPath, method, path: `/api/v1${path}`, headers, signal, agent: false });
  // Whoever waits for the answer is told by `head`; what comes later changes nothing.
  asked.on('error', () => {});
  boundInterimAnswers(asked);
  return asked;
}

function head(asked: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    asked.once('error', reject);
    // After a switch of protocols that nobody asked for no error follows.
    asked.once('upgrade', (_response, socket) => {
      socket.destroy();
      reject(new Error('the daemon speaks another protocol'));
    });
    asked.once('response', (response) => {
      response.on('error', () => {});
      resolve(response);
    });
  });
}
