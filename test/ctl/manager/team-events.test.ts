import { beforeEach, expect, it } from 'vitest';
import { startManaged } from '../../support/ctl/managed.ts';
import { run, start } from '../../support/ctl/sandboxctl.ts';
import { eventually } from '../../support/eventually.ts';

let env: NodeJS.ProcessEnv;
let deleted: () => Promise<string>;

beforeEach(async () => {
  const managed = await startManaged();
  env = managed.env;
  deleted = async () => {
    const id = await managed.api.claim();
    await managed.api.call('DELETE', `/api/v1/sandboxes/${id}`);
    return id;
  };
});

it("the team's lifecycle events are printed with their sandboxes, and go on after the cursor", async () => {
  const id = await deleted();
  const first = await eventually(async () => {
    const { code, stdout, stderr } = await run(['events', '--team'], env);
    expect([code, stdout]).toEqual([0, expect.stringMatching(new RegExp(`sandbox\\.deleted .*\\[${id}\\]`))]);
    return stderr;
  });
  const [, cursor = ''] = /^next: --cursor (\S+)\n$/.exec(first) ?? [];
  expect(await run(['events', '--team', '--cursor', cursor], env)).toMatchObject({ code: 0, stdout: '' });
  const damaged = await run(['events', '--team', '--cursor', 'x'], env);
  expect([damaged.code, damaged.stderr]).toEqual([1, expect.stringMatching(/\(invalid_request\)\n$/)]);

  const following = start(['events', '--team', '-f', '--json', '--cursor', cursor], env);
  const other = await deleted();
  await following.wrote(new RegExp(`"sandbox_id":"${other}"`));
  const { code, stdout } = await following.ended('SIGINT');
  expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ event_type: 'sandbox.deleted' })]);
});

it.each([
  [['events', '--cursor', 'x'], '--cursor needs --team'],
  [['events', '--team', '--since', '1'], '--since is not for --team'],
])('%j is answered with 2', async (args, message) => {
  const { code, stderr } = await run(args, env);
  expect([code, stderr]).toEqual([2, `sandboxctl: ${message}\n`]);
});
