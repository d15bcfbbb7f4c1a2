/** Parts of requests that clients in their right mind do not send. */

export const METHODS = [
  'GET',
  'HEAD',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'QUERY',
  'PROPFIND',
];
export const ODD_METHODS = [
  'MKCOL',
  'PURGE',
  'FOO',
  'get',
  'PoST',
  'POST ',
  'A'.repeat(300),
  '',
  'P\0ST',
  'M-SEARCH',
];
export const ODD_PATHS = [
  ...[
    '/',
    '*',
    '',
    '//',
    '/..',
    '/../../etc/passwd',
    '/%2e%2e/%2e%2e/',
    '/%zz',
    '/%C0%AE',
    '/%00',
    '/%',
    '/\u00ff',
  ],
  ...['/api/v1/processes/%zz', '/api/v1/processes/..%2f..%2fsandbox', '/api/v1/sandbox/', '/API/V1/SANDBOX'],
  ...[
    '/api/v1//sandbox',
    '/api/v1/sandbox?a=%zz',
    '/api/v1/sandbox#x',
    '/api/v1/sandbox;x=1',
    '?',
    '/healthz?',
  ],
  ...[`/api/v1/processes/${'x'.repeat(300)}`, `/api/v1/${'a/'.repeat(2_000)}`, `/${'y'.repeat(20_000)}`],
  ...['/api/v1/sandbox/stop', '/api/v1/sandbox/hold', '/api/v1/sandbox/init', '/api/v1/events/stream'],
  ...['/api/v1/processes/p/attach', 'example.test:80', 'http://', 'ftp://localhost/', '/\\..\\'],
];
export const ODD_VERSIONS = [
  'HTTP/1.0',
  'HTTP/0.9',
  'HTTP/2.0',
  'HTTP/1.10',
  'http/1.1',
  'HTTP/1.1 ',
  '',
  'ICE/1.0',
];
export const ODD_HEADERS = [
  ...[
    'Expect: 100-continue',
    'Expect: 200-ok',
    'Connection: close',
    'Connection: Upgrade',
    'Connection: , ,',
  ],
  ...[
    'Connection: Upgrade\r\nUpgrade: websocket',
    'Connection: Upgrade\r\nUpgrade: h2c',
    'Upgrade: websocket',
  ],
  ...[
    'Accept: \u00ff',
    'Cookie: a=b',
    'X-Control-Scope: manage',
    'X-Control-Scope: manage\r\nX-Control-Scope: read',
  ],
  ...[
    'Content-Type: text/plain',
    'Content-Type: application/json; charset=utf-16',
    'Content-Type:',
    'Range: bytes=0-',
  ],
  ...[
    'Authorization: Bearer',
    'Authorization: Bearer  ',
    'Authorization: Basic OjA=',
    `Authorization: ${'B'.repeat(900)}`,
  ],
  ...[
    'Idempotency-Key: a\r\nIdempotency-Key: b',
    'Last-Event-ID: -1',
    'Sec-WebSocket-Version: 7',
    'Trailer: Host',
  ],
  ...['Content-Encoding: gzip', 'TE: trailers', 'X-HTTP-Method-Override: DELETE', 'Forwarded: host=x'],
];
