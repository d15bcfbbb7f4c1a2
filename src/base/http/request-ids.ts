import { kernelRandom } from '../entropy.ts';

/** Makes the values of `X-Request-Id`: unique in this program, and with near certainty among all. */
export function requestIds(): () => string {
  const prefix = kernelRandom(6).toString('hex');
  let requests = 0;
  return () => `${prefix}-${(++requests).toString(36)}`;
}
