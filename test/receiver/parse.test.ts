import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { Value } from 'typebox/value';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { type EventPayloads as Emitted, EVENT_TYPES } from '../../src/contract/events.ts';
import { eventSchema } from '../../src/contract/routes/webhook.ts';
import { EventError, type EventPayloads, parse } from '../../src/receiver/events.ts';

const FIXTURES = new URL('../../fixtures/events/', import.meta.url);
const bodies = readdirSync(FIXTURES).map((name) => readFileSync(new URL(name, FIXTURES), 'utf8'));

const problem = (body: unknown): string => {
  try {
    parse(typeof body === 'string' ? body : JSON.stringify(body));
    return 'none';
  } catch (error) {
    if (!(error instanceof EventError)) throw error;
    return error.message;
  }
};

describe('parse', () => {
  it('takes the golden body of every kind, as text or bytes, and knows its payload', () => {
    expect(new Set(bodies.map((body) => parse(body).event_type))).toEqual(new Set(EVENT_TYPES));
    for (const body of bodies) expect(parse(new TextEncoder().encode(body))).toEqual(JSON.parse(body));
    const event = parse(bodies.find((body) => body.includes('"process.exited"')) ?? '');
    if (event.event_type !== 'process.exited') throw new Error(event.event_type);
    expectTypeOf(event.payload.exit_code).toEqualTypeOf<number | null>();
    expect(event.payload.exit_code).toBe(3);
  });

  it('has the types of what is emitted', () => {
    expectTypeOf<Emitted>().toExtend<EventPayloads>();
    expectTypeOf<EventPayloads>().toExtend<Emitted>();
  });

  it('names what is wrong', () => {
    const started = JSON.parse(bodies.find((body) => body.includes('"process.started"')) ?? '');
    const payload = (changes: object) => ({ ...started, payload: { ...started.payload, ...changes } });
    expect(problem('{')).toBe('body: must be JSON in UTF-8');
    expect(problem('null')).toBe('body: must be an object');
    expect(problem([])).toBe('body: must be an object');
    expect(problem({ ...started, event_type: 'sandbox.moved' })).toBe('event_type: is unknown');
    expect(problem({ ...started, event_type: 'constructor' })).toBe('event_type: is unknown');
    expect(problem({ ...started, sequence: undefined })).toBe('sequence: is required');
    expect(problem({ ...started, sequence: 0 })).toBe('sequence: must be at least 1');
    expect(problem(payload({ pid: '1' }))).toBe('payload.pid: must be an integer');
    expect(problem(payload({ name: 1 }))).toBe('payload.name: must be a string or null');
    expect(problem(payload({ command: ['a', 1] }))).toBe('payload.command.1: must be a string');
    expect(() => parse(Uint8Array.of(0x22, 0xff, 0x22))).toThrow('body: must be JSON in UTF-8');
    // A later version may say more.
    expect(problem(payload({ is_new: true }))).toBe('none');
  });

  it('agrees with the schema on every change of one field', () => {
    const events = fc.constantFrom(...bodies.map((body) => JSON.parse(body)));
    const values = fc.constantFrom(undefined, null, 0, -1, 1.5, '', 'signal', true, [], [1], ['a'], {});
    fc.assert(
      fc.property(events, fc.nat(), values, fc.boolean(), (event, index, value, is_in_payload) => {
        const changed = structuredClone(event);
        const place = is_in_payload ? changed.payload : changed;
        const names = Object.keys(place).filter((name) => name !== 'event_type' || is_in_payload);
        const name = names[index % names.length];
        if (name === undefined) return;
        place[name] = value;
        const sent = JSON.parse(JSON.stringify(changed));
        // Formats are not checked: a timestamp is any text.
        const is_valid = Value.Check(
          { ...eventSchema(event.event_type) },
          { ...sent, timestamp: event.timestamp },
        );
        const is_text = name !== 'timestamp' || typeof value === 'string';
        expect(problem(sent) === 'none').toBe(is_valid && is_text);
      }),
      { numRuns: 2000 },
    );
  });
});
