import { describe, it } from 'vitest';
import { BACKLOG_CASES } from './conformance/backlog-cases.ts';
import { COMMIT_CASES } from './conformance/commit-cases.ts';
import { FINISHED_CASES } from './conformance/finished-cases.ts';
import { HISTORY_CASES } from './conformance/history-cases.ts';
import type { Case, OutboxUnderTest } from './conformance/outbox-under-test.ts';
import { OUTCOME_CASES } from './conformance/outcome-cases.ts';
import { VIEW_CASES } from './conformance/view-cases.ts';

/** What every engine promises, whatever it stores records in: one sentence and one test each. */
export const CONFORMANCE: Readonly<Record<string, readonly Case[]>> = {
  'commit and restart': COMMIT_CASES,
  'what is attempted when': BACKLOG_CASES,
  outcomes: OUTCOME_CASES,
  'replay, expiry and retention': FINISHED_CASES,
  views: VIEW_CASES,
  'any history': HISTORY_CASES,
};

/**
 * Runs the suite on an engine, each case on an outbox of its own. An engine whose clock is the machine's is spared the
 * cases in which time passes.
 */
export function describeConformance(
  open: () => Promise<OutboxUnderTest>,
  { has_test_clock = true }: { has_test_clock?: boolean } = {},
): void {
  for (const [story, cases] of Object.entries(CONFORMANCE)) {
    describe(story, () => {
      for (const each of cases) {
        it.skipIf(each.takes_time && !has_test_clock)(each.name, async () => each.run(await open()));
      }
    });
  }
}
