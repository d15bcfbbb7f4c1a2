import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { pipeline } from 'node:stream';
import { HOP_BY_HOP } from '../../base/http/hop-by-hop.ts';
import { sendHead } from '../../base/http/send-head.ts';
import { ATTEMPT_TIMEOUT_MS } from '../../contract/defaults.ts';
import { EXIT, Failure } from '../failure.ts';

/** The URL that requests are forwarded to; any scheme but http and https is a usage error. */
export function forwardTarget(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url && ['http:', 'https:'].includes(url.protocol)) return url;
  throw new Failure(EXIT.usage, `--forward must be http://… or https://…, not '${text}'`);
}

/**
 * Forwards a request, its body and end-to-end headers unchanged; resolves with the answer, its body still unread. Whatever
 * the target does, it ends when `sender_gone` aborts.
 */
export async function forward(
  target: URL,
  received: IncomingMessage,
  body: Buffer,
  sender_gone: AbortSignal,
): Promise<IncomingMessage> {
  const headers = endToEnd(received.rawHeaders, ['host', 'content-length']).flat();
  const request = (target.protocol === 'https:' ? httpsRequest : httpRequest)(target, {
    method: 'POST',
    agent: false,
    signal: sender_gone,
    headers: ['Host', target.host, ...headers, 'Content-Length', String(body.length), 'Connection', 'close'],
  });
  request.setTimeout(ATTEMPT_TIMEOUT_MS, () => request.destroy(new Error('no answer in time')));
  return await new Promise((resolve, reject) => {
    request.on('response', resolve).on('error', reject);
    // Such as after an answer that changes to another protocol.
    request.on('close', () => reject(new Error('no answer')));
    request.end(body);
  });
}

/** Statuses that an answer can be passed back with: those of final answers that this side can write. */
const FINAL = { least: 200, most: 999 };

/** Answers with the answer of the forward URL; 502 if it has a status or headers that cannot be passed on. */
export function passBack(answer: IncomingMessage, response: ServerResponse): void {
  const { statusCode: status = 0 } = answer;
  try {
    if (status < FINAL.least || status > FINAL.most) throw new Error(`status ${status}`);
    sendHead(response, status, endToEnd(answer.rawHeaders, []));
  } catch {
    answer.destroy();
    response.writeHead(502).end();
    return;
  }
  pipeline(answer, response, () => {});
}

/** The end-to-end headers, in their order and spelling; `besides` are left out too. */
function endToEnd(raw_headers: string[], besides: string[]): [name: string, value: string][] {
  const kept: [string, string][] = [];
  for (let i = 0; i < raw_headers.length; i += 2) {
    const [name = '', value = ''] = raw_headers.slice(i, i + 2);
    if (!HOP_BY_HOP.has(name.toLowerCase()) && !besides.includes(name.toLowerCase()))
      kept.push([name, value]);
  }
  return kept;
}
