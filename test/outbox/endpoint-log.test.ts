import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import type { EndpointView } from '../../src/contract/deliveries.ts';
import { EndpointLog, loggedEndpoint } from '../../src/outbox/endpoint-log.ts';
import type { AttemptResult } from '../../src/webhook/retry.ts';
import { ManualClock } from '../support/manual-clock.ts';

const ENDPOINT = 'https://consumer.invalid:8443';

function endpointLog() {
  const clock = new ManualClock();
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line)) });
  const endpoint_log = new EndpointLog(log, clock, ENDPOINT);
  const ended = (view: Partial<EndpointView>, result: Partial<AttemptResult>) => {
    endpoint_log.note(
      { health: 'ok', next_probe_at: null, refusals: null, ...view },
      { result: { response_body: null, retry_after: null, ...result } as AttemptResult },
    );
  };
  return { clock, lines, ended };
}

const error_detail = 'connection refused (ECONNREFUSED 10.1.2.3:443)';
const REFUSED = { status: null, error: 'connect', error_detail } as const;
const DOWN = { health: 'backing_off' } as const;
const OK = { status: 204, error: null } as const;

describe('the log of an endpoint', () => {
  it('has one line for the begin of a backoff and one for its end, however many attempts there are', async () => {
    const { clock, lines, ended } = endpointLog();
    ended({}, REFUSED);
    ended({}, OK);
    expect(lines).toEqual([]);
    for (let i = 0; i < 4; i++) {
      ended(DOWN, { status: 503, error: null });
      await clock.advance(500);
    }
    ended({}, OK);
    ended({}, OK);
    expect(lines).toMatchObject([
      { level: 40, endpoint: ENDPOINT, failures: 3, status: 503, msg: 'the endpoint is in backoff' },
      { level: 30, endpoint: ENDPOINT, backoff_ms: 2_000, msg: 'the endpoint has recovered' },
    ]);
    ended(DOWN, REFUSED);
    expect(lines[2]).toMatchObject({ ...REFUSED, msg: 'the endpoint is in backoff' });
  });

  it('has no recovery without a success, as when the delivery is stopped during a backoff', () => {
    const { lines, ended } = endpointLog();
    ended(DOWN, REFUSED);
    ended({}, REFUSED);
    ended({}, { status: 404, error: null });
    expect(lines).toHaveLength(1);
  });
});

describe('the log of an endpoint that refuses', () => {
  it('has one line when that begins and one when it ends, with status and count', () => {
    const { lines, ended } = endpointLog();
    for (const count of [5, 6, 7]) {
      ended({ health: 'rejecting', refusals: { status: 401, count } }, { status: 401, error: null });
    }
    ended({}, OK);
    ended({}, OK);
    const facts = { endpoint: ENDPOINT, status: 401 };
    expect(lines).toMatchObject([
      { level: 40, ...facts, count: 5, msg: 'the endpoint is rejecting: it refuses every event' },
      { level: 30, ...facts, count: 7, answered: 204, msg: 'the endpoint is no longer rejecting' },
    ]);
  });

  it('has the end of a backoff first', () => {
    const { lines, ended } = endpointLog();
    ended(DOWN, REFUSED);
    ended({ health: 'rejecting', refusals: { status: 403, count: 5 } }, { status: 403, error: null });
    expect(lines.map(({ msg }) => msg)).toEqual([
      'the endpoint is in backoff',
      'the endpoint has recovered',
      'the endpoint is rejecting: it refuses every event',
    ]);
  });
});

describe('the name of an endpoint in the log', () => {
  it('is scheme, host and port, never path, query or credentials', () => {
    expect(loggedEndpoint('https://user:word@consumer.invalid:8443/a-secret?key=1#x')).toBe(ENDPOINT);
    expect(loggedEndpoint('no url')).toBeNull();
  });
});
