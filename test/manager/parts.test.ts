import { expect, it } from 'vitest';
import { makeSchedule } from '../../src/manager/parts.ts';
import { scriptedParts } from '../support/manager/scripted-parts.ts';

it('the metrics of a manager carry its prefix, with sandboxes by status', async () => {
  const { claim, sandboxes, metrics } = await scriptedParts();
  await sandboxes.pause(await claim(), null);
  await claim();
  const lines = (await metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  for (const line of lines) expect(line).toMatch(/^sandbox_manager_/);
  expect(lines).toContain('sandbox_manager_sandboxes{status="running"} 1');
  expect(lines).toContain('sandbox_manager_sandboxes{status="paused"} 1');
  expect(lines).toContain('sandbox_manager_claims_total{result="claimed"} 2');
  expect(lines).toContain('sandbox_manager_transitions_total{verb="pause",outcome="done"} 1');
  expect(lines.filter((line) => line.startsWith('sandbox_manager_build_info{version='))).toHaveLength(1);
});

it('the jobs of a manager pause what has expired and delete what has expired for good', async () => {
  const parts = await scriptedParts();
  const { claim, sandboxes, clock } = parts;
  const named = await claim({ config: { ttl: 60, hard_ttl: 120 } });
  const schedule = makeSchedule(parts);
  await schedule.start();
  await clock.advance(59_000);
  expect((await sandboxes.getKept(named)).status).toBe('running');
  await clock.advance(2_000);
  expect((await sandboxes.getKept(named)).status).toBe('paused');
  await clock.advance(60_000);
  expect((await sandboxes.getKept(named)).deleted_at_ms).not.toBeNull();
  await schedule.stop();
});
