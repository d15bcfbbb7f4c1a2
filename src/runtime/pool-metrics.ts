import { Counter, labelledGauge, type Metric } from '../base/metrics.ts';
import type { SandboxTemplates } from '../contract/templates.ts';

/** What tells of the pools of waiting sandboxes; all zero for a runtime that has none. Source: contract section 8. */
export class PoolMetrics {
  /** By result: `pool`, or `cold` where the template has a pool that could not serve the claim. */
  readonly claims = new Counter('pool_claims_total', 'Claims of templates with a pool.', ['result']);
  /** By template. */
  readonly failures = new Counter('pool_failures_total', 'Pods of pools that did not start or have ended.', [
    'template',
  ]);
  readonly #counts = new Map<string, { ready: number; starting: number }>();

  /** Zeros are shown as well: a rate has to begin somewhere. */
  constructor(templates: SandboxTemplates = new Map()) {
    for (const result of ['pool', 'cold']) this.claims.add([result], 0);
    for (const [name, { pool }] of templates) if (pool !== null) this.failures.add([name], 0);
  }

  /** What waits for claims of a template now. */
  count(template: string, ready: number, starting: number): void {
    this.#counts.set(template, { ready, starting });
  }

  /** The metrics for the registry. */
  metrics(): Metric[] {
    const sum = (state: 'ready' | 'starting') =>
      [...this.#counts.values()].reduce((total, each) => total + each[state], 0);
    const pods = labelledGauge('pool_pods', 'Pods that wait for a claim, or will.', 'state', async () => ({
      ready: sum('ready'),
      starting: sum('starting'),
    }));
    return [pods, this.claims, this.failures];
  }
}
