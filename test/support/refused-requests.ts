import { answersOf, exchange, type RawAnswer } from './raw-socket.ts';

/** A request that no application gets to see as it was meant, and what is answered. */
type Refused = [name: string, request: string, status: number, code: string];

const get = (path: string, ...headers: string[]) =>
  [`GET ${path} HTTP/1.1`, 'Host: localhost', ...headers, '', ''].join('\r\n');

/** Refused by the daemon and the manager alike; `taken` is a path that takes GET, and POST not. */
export const refusedRequests = (taken: string): Refused[] => [
  ['a path that is not there', get('/api/v1/nowhere'), 404, 'not_found'],
  ['a bad escape', get('/api/v1/%zz'), 400, 'invalid_request'],
  ['an escape that is no UTF-8', get('/api/v1/%C0%AE'), 400, 'invalid_request'],
  ['a method of WebDAV', get(taken).replace('GET', 'PROPFIND'), 405, 'method_not_allowed'],
  ['the method QUERY', get(taken).replace('GET', 'QUERY'), 405, 'method_not_allowed'],
  ['a method that nobody knows', get(taken).replace('GET', 'FOO'), 405, 'method_not_allowed'],
  ['a method that nobody knows, nowhere', get('/nowhere').replace('GET', 'FOO'), 404, 'not_found'],
  ['a method in lower case', get(taken).replace('GET', 'get'), 405, 'method_not_allowed'],
  ['CONNECT', get('localhost:80').replace('GET', 'CONNECT'), 404, 'not_found'],
  [
    'POST',
    get(taken, 'Content-Type: text/plain', 'Content-Length: 1').replace('GET', 'POST').concat('x'),
    405,
    'method_not_allowed',
  ],
  ['no HTTP', 'hello\r\n\r\n', 400, 'invalid_request'],
  ['another version', get(taken).replace('1.1', '3.0'), 400, 'invalid_request'],
  ['no Host', get(taken).replace('Host: localhost\r\n', ''), 400, 'invalid_request'],
  ['two Hosts', get(taken, 'Host: evil.test'), 400, 'invalid_request'],
  ['two Hosts that are the same', get(taken, 'Host: localhost'), 400, 'invalid_request'],
  ['the URL of another host', get(`http://evil.test${taken}`), 400, 'invalid_request'],
  ['an expectation', get(taken, 'Expect: miracles'), 417, 'invalid_request'],
  ['headers that are too long', get(taken, `X: ${'x'.repeat(20_000)}`), 431, 'invalid_request'],
  ['a URL that is too long', get(`/${'x'.repeat(20_000)}`), 431, 'invalid_request'],
  [
    'a length and chunks',
    get(taken, 'Content-Length: 3', 'Transfer-Encoding: chunked'),
    400,
    'invalid_request',
  ],
];

/** The one answer to a raw request. */
export async function answerTo(port: number, request: string): Promise<RawAnswer> {
  const answers = answersOf(await exchange({ host: '127.0.0.1', port }, request, { quiet_ms: 200 }));
  if (answers.length !== 1) throw new Error(`${answers.length} answers to ${request}`);
  return answers[0] as RawAnswer;
}
