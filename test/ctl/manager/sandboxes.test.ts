import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../../src/base/ids.ts';
import { type Managed, startManaged } from '../../support/ctl/managed.ts';
import { run } from '../../support/ctl/sandboxctl.ts';
import { eventually } from '../../support/eventually.ts';

let managed: Managed;

beforeEach(async () => {
  managed = await startManaged();
});

/** What a command prints that must succeed. */
async function printed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(args, managed.env);
  expect([code, args, stderr]).toEqual([0, args, expect.anything()]);
  return stdout.trimEnd();
}

describe('the sandboxes of a manager', () => {
  it('are claimed, listed, shown, paused, resumed and refreshed', async () => {
    const secret = join(managed.folder, 'secret');
    const variables = join(managed.folder, 'variables');
    writeFileSync(secret, 'of the webhook\n');
    writeFileSync(variables, 'A=1\nB="two words"\n');
    const claim = ['claim', '--template', 'small', '--metadata', 'branch:main:1', '--memory', '256Mi'];
    const webhook = ['--webhook-url', 'http://127.0.0.1:9/hook', '--webhook-secret-file', secret];
    const kinds = ['--watch-ignore', '*.tmp', '--event', 'sandbox.deleted', '--event', 'agent.event'];
    const more = [
      ...kinds,
      '--env-from',
      variables,
      '--env',
      'C=3',
      '--ttl',
      '1h',
      '--watch-dir',
      '/nowhere',
      '--webhook-retry',
      'any',
      '--idle-ttl',
      '2h',
    ];
    const id = await printed('sandbox', ...claim, ...webhook, ...more, '--idempotency-key', 'k');
    expect(await printed('sandbox', ...claim, ...webhook, ...more, '--idempotency-key', 'k')).toBe(id);
    const other = await printed('sandbox', 'claim');

    expect(
      (await printed('sandbox', 'list'))
        .split('\n')
        .slice(1)
        .map((line) => line.split(' ')[0]),
    ).toEqual([other, id]);
    expect(
      JSON.parse(await printed('sandbox', 'list', '--metadata', 'branch:main:1', '--json')),
    ).toMatchObject({
      sandboxes: [{ id, template_id: 'small', metadata: { branch: 'main:1' }, env_names: ['A', 'B', 'C'] }],
      count: 1,
    });
    expect(await printed('sandbox', 'list', '--status', 'paused')).toBe('');
    const shown = await printed('sandbox', 'show', id);
    for (const part of [
      id,
      'team_1',
      'running',
      '256Mi',
      'http://127.0.0.1:9/hook, signed',
      'A B C',
      'branch:main:1',
      'sandbox.deleted agent.event',
      '*.tmp',
      'paused after 2 h 0 min without use',
    ]) {
      expect(shown).toContain(part);
    }
    expect(await printed('--sandbox', id, 'status')).toBe(shown);

    const copy = await printed('sandbox', 'fork', id, '--webhook-url', 'http://127.0.0.1:9/new');
    expect(await printed('sandbox', 'show', copy)).toContain('http://127.0.0.1:9/new, not signed');
    expect(await printed('sandbox', 'pause', id)).toBe(`${id} is paused`);
    const twice = await run(['sandbox', 'pause', id], managed.env);
    expect([twice.code, twice.stderr]).toEqual([1, expect.stringMatching(/^sandboxctl: .*\(conflict\)\n$/)]);
    expect(JSON.parse(await printed('sandbox', 'show', id, '--json'))).toMatchObject({ status: 'paused' });
    expect(await printed('sandbox', 'resume', '--sandbox', id)).toBe(`${id} is running`);
    expect(await printed('sandbox', 'refresh', id, '--duration', '2h')).toMatch(/ expires at 20.*Z$/);
    expect(await printed('sandbox', 'refresh', other)).toBe(`${other} has no ttl`);
  });

  it('are deleted only where they are named, and all of them or none', async () => {
    const id = await printed('sandbox', 'claim');
    const env = { ...managed.env, SANDBOXCTL_SANDBOX: id };
    expect(await run(['sandbox', 'delete'], env)).toMatchObject({ code: 2, stdout: '' });
    expect(await run(['sandbox', 'delete', id, 'sbx_ff'], env)).toMatchObject({ code: 1, stdout: '' });
    const unknown = newId('sbx_', 0);
    const of_two = await run(['sandbox', 'delete', id, unknown], env);
    expect(of_two).toMatchObject({
      code: 1,
      stdout: '',
      stderr: `sandboxctl: ${unknown}: There is no such sandbox. (not_found)\n`,
    });
    expect(JSON.parse(await printed('sandbox', 'list', '--json')).count).toBe(1);
    expect(await printed('sandbox', 'kill', '--sandbox', id.slice(0, -2))).toBe(`${id} is being deleted`);
    await eventually(async () =>
      expect(JSON.parse(await printed('sandbox', 'list', '--json')).count).toBe(0),
    );
    const gone = await run(['--sandbox', id, 'ps'], managed.env);
    expect([gone.code, gone.stderr]).toEqual([
      1,
      `sandboxctl: ${id}: The sandbox has been deleted. (not_found)\n`,
    ]);
  });

  it('are listed in as many pages as it takes', async () => {
    for (let i = 0; i < 3; i++) await managed.api.claim();
    const { stdout, stderr } = await run(['sandbox', 'list', '--limit', '2'], managed.env);
    expect(stdout.trimEnd().split('\n')).toHaveLength(3);
    expect(stderr).toBe('2 of 3 sandboxes; --limit shows more\n');
  });

  it("have their team's quotas and usage beside them", async () => {
    expect(await printed('quota')).toMatch(/^DIMENSION .*\nactive_sandboxes +unlimited/);
    expect(JSON.parse(await printed('quota', 'sandbox_claims', '--json'))).toMatchObject({
      dimension: 'sandbox_claims',
    });
    const unknown = await run(['quota', 'speed'], managed.env);
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringMatching(/\(invalid_request\)\n$/)]);
    const emptied = await printed('sandbox', 'claim');
    expect(await printed('sandbox', 'pause', '--no-memory', emptied)).toBe(
      `${emptied} is paused; its processes have ended`,
    );
    const { windows, next_cursor } = JSON.parse(await printed('usage', '--json'));
    expect(windows).toMatchObject([
      { window_type: 'sandbox.runtime_mib_milliseconds' },
      { window_type: 'sandbox.runtime_millicpu_milliseconds' },
    ]);
    expect(await printed('usage')).toContain('mib_milliseconds');
    expect(JSON.parse(await printed('usage', '--json', '--cursor', next_cursor)).windows).toEqual([]);
  });

  it.each([
    [['sandbox', 'claim', '--ttl', '1.5s'], '--ttl must be whole seconds'],
    [['sandbox', 'claim', '--watch-dir', '/x'], '--watch-dir needs --webhook-url'],
    [
      ['sandbox', 'fork', 'sbx_1', '--webhook-secret-file', '/x'],
      '--webhook-secret-file needs --webhook-url',
    ],
    [['sandbox', 'claim', '--event', 'x'], 'Allowed choices are sandbox.ready'],
    [['sandbox', 'claim', '--metadata', 'a'], 'It must be key:text.'],
    [['sandbox', 'claim', '--cpu', 'many'], 'It must be a number of cores'],
    [['sandbox', 'claim', '--env-from', '/none'], 'cannot read /none: no such file'],
    [['sandbox', 'show'], 'it is unknown which sandbox is meant'],
    [['ps'], 'it is unknown which sandbox is meant'],
    [['publish', '{}'], 'publish is for programs in a sandbox; it does not go through the manager'],
    [['doctor'], 'doctor checks the machine that it runs on; it does not go through the manager'],
    [['test'], 'it does not go through the manager'],
    [
      ['ps', '--manager', 'http://a', '--url', 'http://b'],
      "'--manager <url>' cannot be used with option '--url",
    ],
    [['sandbox', 'list', '--profile', 'x'], 'there is no profile "x"'],
  ])('answer %j with 2 and one line', async (args, message) => {
    const ended = await run(args, managed.env);
    expect([ended.code, ended.stdout]).toEqual([2, '']);
    expect(ended.stderr).toMatch(/^sandboxctl: [^\n]*\n$/);
    expect(ended.stderr).toContain(message);
  });
});
