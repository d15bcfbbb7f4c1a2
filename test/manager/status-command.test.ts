import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { managerStatus, statusText } from '../../src/manager/status-command.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { scratchFolder } from '../support/scratch.ts';

async function running(options: object = {}) {
  const folder = scratchFolder();
  const manager = await startManager(`sqlite:${join(folder, 'manager.db')}`, {
    options: { ...options },
    folder,
  });
  const admin = await manager.client('operators', 'admin');
  const team = await manager.client('team_1', 'sandboxes:write');
  const token_file = join(folder, 'token');
  writeFileSync(token_file, `${admin.token}\n`);
  const { hostname: host, port } = new URL(team.url);
  return { team, token_file, place: { host, port: Number(port) } };
}

it('shows what is taken of the node, and what a share of it is', async () => {
  const { team, token_file, place } = await running({ node_memory: '2Gi', node_disk: '4Gi' });
  const source = await team.claim({ resources: { memory: '128Mi', cpu: 0.5, disk: '256Mi' } });
  await team.post(`/api/v1/sandboxes/${source}/fork`);
  const status = await managerStatus(place, { token_file });
  expect(status).toMatchObject({ is_ready: true, reason: null, node: { team_share: 25, has_more: false } });
  expect(statusText(status)).toBe(`${team.url}  ready
  memory                         256Mi  of 2Gi
  cores                            0.5  of no budget
  running sandboxes                  1  of no budget
  disk                           512Mi  of 4Gi         a team's share: 1Gi (25 %)
  of the memory, 1 paused        128Mi  of 2Gi         a team's share: 512Mi (25 %)
team_1  disk 512Mi, 1 running with 128Mi and 0.5 cores, 1 paused with 128Mi
`);
});

it('says without a token how to get one, and calls an address that can be called', async () => {
  const { team, place } = await running();
  const status = await managerStatus({ ...place, host: '0.0.0.0' }, {});
  expect(status).toMatchObject({ url: team.url, is_ready: true, node: null });
  expect(statusText(status)).toContain('sandbox-manager token create --team ID --scope admin');
});

it('names what is wrong: a token that is none or lacks the scope, a file, and a manager that is not there', async () => {
  const { team, place, token_file } = await running();
  await expect(managerStatus(place, { token: 'none' })).rejects.toThrow('the token: A valid bearer token');
  await expect(managerStatus(place, { token: team.token })).rejects.toThrow('do not include admin');
  await expect(managerStatus(place, { token_file: `${token_file}.gone` })).rejects.toThrow('cannot be read');
  await expect(managerStatus({ host: '127.0.0.1', port: 1 }, {})).rejects.toThrow(
    'no manager answers at http://127.0.0.1:1',
  );
});
