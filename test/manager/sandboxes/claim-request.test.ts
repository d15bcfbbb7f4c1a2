import { expect, it } from 'vitest';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

const SANDBOXES = '/api/v1/sandboxes';

it('takes variables of at most 64 KiB, in a claim and in a change', async () => {
  const { client } = await startManager(`sqlite:${scratchFolder()}/manager.db`);
  const team = await client('team_1', 'sandboxes:write');
  const most = { A: 'x'.repeat(30_000), B: 'é'.repeat(17_000) };
  const id = await team.claim({ env_vars: most });
  const more = { config: { env_vars: { ...most, C: 'x'.repeat(2_000) } } };
  for (const { status, error } of [
    await team.post(SANDBOXES, more),
    await team.call('PUT', `${SANDBOXES}/${id}`, more),
  ]) {
    expect([status, error?.details?.field]).toEqual([400, 'config.env_vars']);
  }
});
