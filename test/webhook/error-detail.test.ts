import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  errorDetail,
  oneLine,
  statusDetail,
  type TransportError,
  timeoutDetail,
} from '../../src/webhook/error-detail.ts';

const TARGET = { hostname: 'hooks.invalid', port: 443 };

function error(facts: Partial<TransportError>): TransportError {
  return Object.assign(new Error(facts.message ?? 'from the library'), facts);
}

describe('the detail of an error', () => {
  it.each([
    [
      'connect',
      { code: 'ECONNREFUSED', address: '10.1.2.3', port: 81 },
      'connection refused (ECONNREFUSED 10.1.2.3:81)',
    ],
    [
      'connect',
      { code: 'ENETUNREACH', address: '2001:db8::1', port: 443 },
      'no route to the network (ENETUNREACH [2001:db8::1]:443)',
    ],
    ['dns', { code: 'ENOTFOUND' }, 'no such host (ENOTFOUND hooks.invalid)'],
    ['dns', { code: 'EAI_AGAIN' }, 'the name cannot be resolved right now (EAI_AGAIN hooks.invalid)'],
    [
      'tls',
      { code: 'CERT_HAS_EXPIRED', message: 'certificate has expired' },
      'certificate has expired (CERT_HAS_EXPIRED hooks.invalid:443)',
    ],
    [
      'tls',
      { code: 'EPROTO', reason: 'wrong version number' },
      'wrong version number (EPROTO hooks.invalid:443)',
    ],
    ['reset', { code: 'ECONNRESET' }, 'connection reset (ECONNRESET hooks.invalid:443)'],
    [
      'reset',
      { code: 'UND_ERR_SOCKET', socket: { remoteAddress: '10.1.2.3', remotePort: 443 } },
      'the receiver closed the connection (10.1.2.3:443)',
    ],
    [
      'protocol',
      { code: 'UND_ERR_HEADERS_OVERFLOW', message: 'Headers Overflow Error' },
      'the answer is not valid HTTP (UND_ERR_HEADERS_OVERFLOW)',
    ],
  ] as const)('says of %s what it was and where', (kind, facts, detail) => {
    expect(errorDetail(kind, error(facts), TARGET)).toBe(detail);
  });

  it('names every address that was tried', () => {
    const tried = ['127.0.0.1', '::1'].map((address) => error({ code: 'ECONNREFUSED', address, port: 9 }));
    expect(errorDetail('connect', new AggregateError(tried), TARGET)).toBe(
      'connection refused (ECONNREFUSED 127.0.0.1:9); connection refused (ECONNREFUSED [::1]:9)',
    );
  });
});

describe('the detail of a time-out', () => {
  it('says what was waited for', () => {
    expect(timeoutDetail('resolving', 15_000, TARGET)).toBe(
      'the name hooks.invalid was not resolved within 15 s',
    );
    expect(timeoutDetail('connecting', 5_000, TARGET)).toBe('no connection to hooks.invalid:443 within 5 s');
    expect(timeoutDetail('answering', 1_500, TARGET)).toBe('hooks.invalid:443 did not answer within 1.5 s');
  });
});

describe('the detail of a status', () => {
  it('is its text, the usual one where the receiver gives none, and none for a success', () => {
    expect(statusDetail(200, 'OK', '')).toBeNull();
    expect(statusDetail(503, 'Closed for today', '')).toBe('503 Closed for today');
    expect(statusDetail(429, '', '')).toBe('429 Too Many Requests');
    expect(statusDetail(799, undefined, '')).toBe('799');
  });

  it('repeats no query of the URL', () => {
    expect(statusDetail(404, 'no /hook?token=abc', 'token=abc')).toBe('404 Not Found');
  });

  it('is one short line, whatever the receiver sends', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 1_000 }), (text) => {
        const line = oneLine(text);
        expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
        expect([...line].length).toBeLessThanOrEqual(256);
        expect(oneLine(line)).toBe(line);
      }),
    );
    expect(oneLine('x'.repeat(300))).toBe(`${'x'.repeat(255)}…`);
  });
});
