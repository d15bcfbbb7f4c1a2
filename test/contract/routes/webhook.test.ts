import { describe, expect, it } from 'vitest';
import { problemOf } from '../../../src/base/schema.ts';
import { eventSchema } from '../../../src/contract/routes/webhook.ts';

const envelope = {
  event_id: 'evt_1',
  timestamp: '2026-01-15T09:30:12.045Z',
  sandbox_id: '',
  team_id: '',
};

describe('the schema of an event', () => {
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
