import http from 'node:http';
import { CONTROL_SCOPE_HEADER } from '../../../src/contract/control-socket.ts';

export interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  text: string;
  /** The parsed body, or null where it is no JSON. */
  json: {
    success?: boolean;
    data?: unknown;
    error?: { code: string; message: string; details?: unknown };
  } | null;
}

export interface Question {
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
  within_ms?: number;
  /** Over this Unix socket instead. */
  socket_path?: string | undefined;
}

/** One HTTP request on a connection of its own. Rejects where there is no whole answer in time. */
export function ask(url: string, question: Question = {}): Promise<Answer> {
  const { method = 'GET', headers = {}, body, within_ms = 30_000, socket_path } = question;
  const over = socket_path ? { socketPath: socket_path } : {};
  const scope = socket_path ? { [CONTROL_SCOPE_HEADER]: 'manage' } : {};
  return new Promise((resolve, reject) => {
    const request = http.request(
      url,
      { method, headers: { ...scope, ...headers }, agent: false, ...over },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: parsed(text) });
        });
      },
    );
    request.setTimeout(within_ms, () => request.destroy(new Error(`no answer within ${within_ms} ms`)));
    request.on('error', reject);
    request.end(body);
  });
}

function parsed(text: string): Answer['json'] {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
