import type { Static } from 'typebox';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { problemOf } from '../../../src/base/schema.ts';
import type { EventPayloads } from '../../../src/contract/events.ts';
import { EVENT_TYPES } from '../../../src/contract/events.ts';
import { EVENT_PAYLOADS, eventSchema } from '../../../src/contract/schema/events.ts';

type Described = { [Type in keyof typeof EVENT_PAYLOADS]: Static<(typeof EVENT_PAYLOADS)[Type]> };

const envelope = {
  event_id: 'evt_1',
  timestamp: '2026-01-15T09:30:12.045Z',
  sandbox_id: '',
  team_id: '',
};

describe('the schema of an event', () => {
  it('has the payload that the daemon emits', () => {
    expectTypeOf<Described>().toExtend<EventPayloads>();
    expectTypeOf<EventPayloads>().toExtend<Described>();
    expect(Object.keys(EVENT_PAYLOADS)).toEqual([...EVENT_TYPES]);
  });

  it('has a sequence, except of sandbox.deleted', () => {
    const killed = { reason: 'signal', signal: null, uptime_ms: 0 };
    const schema = eventSchema('sandbox.killed');
    const body = { ...envelope, event_type: 'sandbox.killed', payload: killed };
    expect(problemOf(schema, { ...body, sequence: 1 })).toBeNull();
    expect(problemOf(schema, body)).toEqual({ field: 'sequence', problem: 'is required' });
    expect(problemOf(schema, { ...body, sequence: 0 })).toEqual({
      field: 'sequence',
      problem: 'must be an integer of at least 1',
    });
    const deleted = {
      ...envelope,
      event_type: 'sandbox.deleted',
      payload: { reason: 'api', actor: null },
    };
    expect(problemOf(eventSchema('sandbox.deleted'), deleted)).toBeNull();
    expect(problemOf(eventSchema('sandbox.deleted'), { ...deleted, sequence: 1 })).toEqual({
      field: 'sequence',
      problem: 'unknown field',
    });
  });

  it('is of its own type alone', () => {
    const body = { ...envelope, event_type: 'agent.event', sequence: 1, payload: { any: ['thing'] } };
    expect(problemOf(eventSchema('agent.event'), body)).toBeNull();
    expect(problemOf(eventSchema('sandbox.ready'), body)).toMatchObject({ field: 'event_type' });
  });
});
