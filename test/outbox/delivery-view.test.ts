import { describe, expect, it } from 'vitest';
import { type DetailRow, deliveryDetail, deliveryView } from '../../src/outbox/delivery-view.ts';

const ROW: DetailRow = {
  event_id: 'evt_1',
  event_type: 'agent.event',
  sequence: 3,
  state: 'pending',
  created_at_ms: Date.UTC(2026, 0, 1),
  finished_at_ms: null,
  due_ms: 5_000,
  attempts: 2,
  last_status: 503,
  last_error: null,
  last_error_detail: null,
  headers: '{"ce-id":"evt_1"}',
  body: '{"price":1.10}',
};

describe('a delivery as both APIs show it', () => {
  it('has its next attempt in wall time, and what the latest attempt came to', () => {
    expect(deliveryView(ROW, Date.UTC(2026, 0, 2))).toEqual({
      event_id: 'evt_1',
      event_type: 'agent.event',
      sequence: 3,
      state: 'pending',
      created_at: '2026-01-01T00:00:00.000Z',
      finished_at: null,
      next_attempt_at: '2026-01-02T00:00:05.000Z',
      attempt_count: 2,
      last_status: 503,
      last_error: null,
      last_error_detail: null,
    });
  });

  it('has no next attempt before it is scheduled, once it is final, or while its sandbox is away', () => {
    expect(deliveryView({ ...ROW, due_ms: 0 }, 0).next_attempt_at).toBeNull();
    expect(deliveryView({ ...ROW, state: 'failed', due_ms: null }, 0).next_attempt_at).toBeNull();
    expect(deliveryView({ ...ROW, state: 'foreign' }, 0).next_attempt_at).toBeNull();
  });

  it('has the exact body, its headers and its attempts in detail', () => {
    const attempt = {
      attempt: 1,
      started_at_ms: Date.UTC(2026, 0, 1),
      // As earlier versions of the manager stored it.
      duration_ms: 11.6,
      status: null,
      error: 'dns' as const,
      next_attempt_at_ms: Date.UTC(2026, 0, 1) + 500,
      error_detail: 'no such host (ENOTFOUND no.invalid)',
      response_body: null,
    };
    expect(deliveryDetail(ROW, [attempt], 0)).toEqual({
      ...deliveryView(ROW, 0),
      body: '{"price":1.10}',
      headers: { 'ce-id': 'evt_1' },
      attempts: [
        {
          attempt: 1,
          started_at: '2026-01-01T00:00:00.000Z',
          duration_ms: 12,
          status: null,
          error: 'dns',
          next_attempt_at: '2026-01-01T00:00:00.500Z',
          error_detail: 'no such host (ENOTFOUND no.invalid)',
          response_body: null,
        },
      ],
    });
  });
});
