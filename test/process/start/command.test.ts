import { expect, test } from 'vitest';
import { CannotStart, commandOf } from '../../../src/process/start/command.ts';
import { listOf, start } from '../../support/process/harness.ts';

test.each([
  [{ command: ['no-such-program'] }, 'command', 127],
  [{ command: ['/no/such/program'] }, 'command', 127],
  [{ command: ['/etc/passwd'] }, 'command', 126],
  [{ command: ['/etc'] }, 'command', 126],
  [{ command: ['true'], cwd: '/no/such/folder' }, 'cwd', 126],
  [{ command: ['true'], cwd: '/etc/passwd' }, 'cwd', 126],
  [{ command: ['true'], user: 'nobody-such' }, 'user', 126],
])(
  '%j cannot be started: the field is named, no event is made and the id stays free',
  async (request, field, exit_code) => {
    const { supervisor, events } = await start();
    const failure = await supervisor.spawn({ ...request, process_id: 'p' }).catch((error) => error);
    expect(failure).toBeInstanceOf(CannotStart);
    expect(failure).toMatchObject({ code: 'invalid_request', details: { field, exit_code }, exit_code });
    expect(await listOf(supervisor)).toEqual([]);
    expect(events).toEqual([]);
    const { created } = await supervisor.spawn({ command: ['true'], process_id: 'p' });
    expect(created).toBe(true);
  },
);

test('the shell form is /bin/sh -c', () => {
  expect(commandOf({ shell: 'echo $A' })).toEqual(['/bin/sh', '-c', 'echo $A']);
});
