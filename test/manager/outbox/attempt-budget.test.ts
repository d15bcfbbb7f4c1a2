import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AttemptBudget, EndpointLoad } from '../../../src/manager/outbox/attempt-budget.ts';

const never = () => {};

/** Begins as many attempts as are granted, at most `most`; returns how many. */
function fill(permits: AttemptBudget, use: EndpointLoad, most = 16): number {
  let begun = 0;
  while (begun < most && permits.mayStart(use, true, never)) {
    permits.begin(use);
    begun += 1;
  }
  return begun;
}

describe('the attempts that may be under way in all', () => {
  it('are never more than allowed, and leave room for an endpoint that has none', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 16 }), { maxLength: 200 }), (wishes) => {
        const permits = new AttemptBudget();
        for (const wish of wishes) fill(permits, new EndpointLoad(), wish);
        expect(permits.under_way).toBeLessThanOrEqual(256);
        expect(permits.mayStart(new EndpointLoad(), true, never)).toBe(true);
      }),
    );
  });

  it('are half at most for endpoints that fail', () => {
    const permits = new AttemptBudget();
    for (let i = 0; i < 300; i++) {
      const use = new EndpointLoad();
      use.is_failing = true;
      fill(permits, use, 1);
    }
    expect(permits.under_way).toBe(128);
    expect(fill(permits, new EndpointLoad())).toBe(16);
  });

  it('are offered again to who was told no, in turn, once there is room', async () => {
    const permits = new AttemptBudget(2);
    const [one, two, three] = [new EndpointLoad(), new EndpointLoad(), new EndpointLoad()] as const;
    const ends = [one, two].map((use) => permits.begin(use));
    const told: string[] = [];
    expect(permits.mayStart(three, true, () => void told.push('three'))).toBe(false);
    expect(permits.mayStart(one, true, () => void told.push('one'))).toBe(false);
    permits.forget(one);
    ends[1]?.();
    await new Promise((resolve) => setImmediate(resolve));
    expect(told).toEqual(['three']);
    expect(permits.mayStart(three, true, never)).toBe(true);
  });

  it('are none while nothing may begin', () => {
    const permits = new AttemptBudget();
    let told = 0;
    const count = () => {
      told += 1;
    };
    expect(permits.mayStart(new EndpointLoad(), false, count)).toBe(false);
    permits.wake();
    expect(told).toBe(1);
  });
});
