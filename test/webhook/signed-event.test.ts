import { createHmac } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { VERSION } from '../../src/base/version.ts';
import { EVENT_TYPES, type EventPayloads, type EventType } from '../../src/contract/events.ts';
import { verify } from '../../src/webhook/signature.ts';
import { type Envelope, signedEvent } from '../../src/webhook/signed-event.ts';

/** Not `.json`: whoever formats JSON must leave these bytes alone. */
const FOLDER = new URL('../../fixtures/events/', import.meta.url);

const SECRET = 'made for this test';

const usage = { cpu_ms: 1_250, memory_bytes: 73_400_320, processes: 3 };

const exited: EventPayloads['process.exited'] = {
  process_id: 'build',
  pid: 4711,
  exit_code: 3,
  signal: null,
  duration_ms: 2_345,
  timed_out: false,
  stdout_preview: 'compiling…\n',
  stderr_preview: 'error: "x" is not defined\n',
  restart_count: 0,
};

/** One payload of every kind, the keys in the contract's order; an agent's is text and stays as it is. */
const payloads: { [Type in EventType]: EventPayloads[Type] | string } = {
  'sandbox.ready': { http_port: 49_983, version: '0.1.0', watch_dir: '/workspace' },
  'sandbox.paused': { reason: 'idle', resource_usage: usage },
  'sandbox.resumed': { reason: null, paused_ms: 60_000 },
  'sandbox.killed': { reason: 'signal', signal: 'SIGTERM', uptime_ms: 3_600_000 },
  'sandbox.deleted': { reason: 'ttl_expired', actor: null },
  'process.started': {
    process_id: 'build',
    pid: 4711,
    command: ['make', '-j2', 'all'],
    cwd: '/workspace',
    name: null,
    restart_count: 0,
  },
  'process.exited': exited,
  'process.crashed': { ...exited, exit_code: 139, signal: 'SIGSEGV', reason: 'signal', core_dumped: false },
  'file.modified': {
    event_type: 'rename',
    path: '/workspace/notes.md',
    old_path: '/workspace/.notes.md.swp',
    is_directory: false,
  },
  'agent.event':
    '{"price": 1.10,"huge":1e400, "id":12345678901234567890,\n "text":"\\u00fc ü 🦊","z":1,"a":[ ]}',
};

/** What the golden body of a kind is made of. */
function envelope(event_type: EventType): Envelope {
  const payload = payloads[event_type];
  return {
    event_id: 'evt_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47',
    event_type,
    happened_at_ms: Date.UTC(2026, 0, 15, 9, 30, 12, 45),
    sandbox_id: 'sb-7f3a',
    team_id: 'team-acme',
    sequence: event_type === 'sandbox.deleted' ? null : 42,
    payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
  };
}

const bodyOf = (given: Envelope) => signedEvent(given, 'sandboxd', '').body;

describe('the golden bodies', () => {
  it('are one for every kind of event', () => {
    expect(readdirSync(FOLDER).toSorted()).toEqual(EVENT_TYPES.map((type) => `${type}.body`).toSorted());
  });

  it.each(EVENT_TYPES)('of %s is made byte by byte', (event_type) => {
    const golden = readFileSync(new URL(`${event_type}.body`, FOLDER), 'utf8');
    expect(bodyOf(envelope(event_type))).toBe(golden);
  });
});

const id = fc.stringMatching(/^[\x21-\x7e]{0,40}$/);
const envelopes = fc.record({
  event_id: fc.uuid().map((uuid) => `evt_${uuid}`),
  event_type: fc.constantFrom(...EVENT_TYPES),
  happened_at_ms: fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) }),
  sandbox_id: id,
  team_id: id,
  sequence: fc.option(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })),
});
const whiteSpace = fc.stringMatching(/^[ \t\n\r]{0,5}$/);
/** Objects as a publisher may write them: any tokens, any white space, keys in any order. */
const payloadTexts = fc.oneof(
  fc.json().map((json) => `{"value":${json}}`),
  fc
    .tuple(
      whiteSpace,
      fc.constantFrom(
        '1.10',
        '1e400',
        '-0',
        '12345678901234567890',
        '1E+2',
        '"\\u00e9\\ud83d"',
        '"ü🦊\u2028"',
      ),
      whiteSpace,
    )
    .map(([before, token, after]) => `{${before}"k"${after}:${before}${token}${after}}`),
);

describe('a body', () => {
  it('is JSON with the keys in their order, without sequence where there is none', () => {
    fc.assert(
      fc.property(envelopes, payloadTexts, (given, payload) => {
        const parsed = JSON.parse(bodyOf({ ...given, payload }));
        const { happened_at_ms, sequence, ...rest } = given;
        expect(Object.keys(parsed)).toEqual([
          'event_id',
          'event_type',
          'timestamp',
          'sandbox_id',
          'team_id',
          ...(sequence === null ? [] : ['sequence']),
          'payload',
        ]);
        expect(parsed).toMatchObject(rest);
        expect(Date.parse(parsed.timestamp)).toBe(happened_at_ms);
        expect(parsed.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        expect(parsed.sequence).toBe(sequence ?? undefined);
        expect(parsed.payload).toEqual(JSON.parse(payload));
      }),
    );
  });

  it('holds the payload as it was written, and no white space of its own', () => {
    fc.assert(
      fc.property(envelopes, payloadTexts, (given, payload) => {
        const text = bodyOf({ ...given, payload });
        const around = text.slice(0, text.length - payload.length - 1);
        expect(text).toBe(`${around}${payload}}`);
        expect(around.endsWith('"payload":')).toBe(true);
        expect(around).not.toMatch(/[\s]/);
      }),
    );
  });
});

describe('the signature', () => {
  it('is over the exact body, whatever the payload', () => {
    fc.assert(
      fc.property(envelopes, payloadTexts, (given, payload) => {
        const { headers, body } = signedEvent({ ...given, payload }, 'sandboxd', SECRET);
        expect(verify(SECRET, body, headers['X-Service-Signature'])).toBe(true);
      }),
    );
  });
});

describe('the headers that never change', () => {
  it('are those of the contract and no others', () => {
    const { headers, body } = signedEvent(envelope('agent.event'), 'sandboxd', SECRET);
    const signature = createHmac('sha256', SECRET).update(body).digest('hex');
    expect(headers).toEqual({
      'Content-Type': 'application/json',
      'User-Agent': `sandboxd/${VERSION}`,
      'X-Service-Signature': signature,
      'ce-specversion': '1.0',
      'ce-id': 'evt_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47',
      'ce-source': '/sandboxes/sb-7f3a',
      'ce-type': 'agent.event',
      'ce-time': '2026-01-15T09:30:12.045Z',
      'ce-sequence': '42',
    });
  });

  it('leave out the signature without a secret, and the sequence of a deletion', () => {
    const { headers } = signedEvent(envelope('sandbox.deleted'), 'sandbox-manager', '');
    expect(headers).not.toHaveProperty('X-Service-Signature');
    expect(headers).not.toHaveProperty('ce-sequence');
    expect(headers['User-Agent']).toBe(`sandbox-manager/${VERSION}`);
  });

  it('can be sent whatever the ids are', () => {
    fc.assert(
      fc.property(envelopes, (given) => {
        const { headers } = signedEvent({ ...given, payload: '{}' }, 'sandboxd', '');
        expect(() => new Headers(headers)).not.toThrow();
      }),
    );
  });
});
