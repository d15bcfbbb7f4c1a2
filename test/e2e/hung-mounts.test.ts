import { describe, expect, it } from 'vitest';
import { PIPE_PLACES } from '../support/hung/pipe-places.ts';
import { failuresAt } from '../support/hung/property.ts';
import { CAN_HANG, unlessHangs } from '../support/hung-mount.ts';

describe.runIf(CAN_HANG)(`beside what hangs, everything else goes on${unlessHangs}`, () => {
  it('where nobody reads the log or the output of the main command', async () => {
    expect(await failuresAt(PIPE_PLACES)).toEqual([]);
  });
});
