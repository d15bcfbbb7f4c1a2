import { describe, expect, it } from 'vitest';
import { FILE_PLACES } from '../support/hung/file-places.ts';
import { PIPE_PLACES } from '../support/hung/pipe-places.ts';
import { PROCESS_PLACES } from '../support/hung/process-places.ts';
import { failuresAt, failuresBeside } from '../support/hung/property.ts';
import { CAN_HANG, unlessHangs } from '../support/hung-mount.ts';

/** Places that no start of a daemon needs; the long form has all, and reads their answers. */
const WAITING = [...PROCESS_PLACES, ...FILE_PLACES].filter(({ name }) =>
  [
    'cwd',
    'PATH entry',
    'interpreter',
    'stat',
    'list',
    'upload target',
    'archive that is read',
    'mkdir',
  ].includes(name),
);

describe.runIf(CAN_HANG)(`beside what hangs, everything else goes on${unlessHangs}`, () => {
  it('where processes and file operations wait for a mount', async () => {
    expect(await failuresBeside(WAITING)).toEqual([]);
  });

  it('where nobody reads the log or the output of the main command', async () => {
    expect(await failuresAt(PIPE_PLACES)).toEqual([]);
  });
});
