import { expect, it } from 'vitest';
import { quotaExceeded } from '../../../src/manager/quotas/admission.ts';

it('is refused with how much is left, when there is more, and what takes none of it', () => {
  const refused = quotaExceeded({
    ...{ dimension: 'sandbox_claims', limit: 5, current: null, requested: 1, retry_after_ms: 180 },
  });
  expect(refused.message).toBe(
    "The team's quota of sandbox_claims (5) is used up: 1 needed, 0 left, more in 180 ms. Resumes and forks take none.",
  );
});
