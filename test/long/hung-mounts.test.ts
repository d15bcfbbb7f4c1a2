import { describe, expect, it } from 'vitest';
import { FILE_PLACES } from '../support/hung/file-places.ts';
import { MACHINE_PLACES } from '../support/hung/machine-places.ts';
import { PIPE_PLACES } from '../support/hung/pipe-places.ts';
import type { Place } from '../support/hung/place.ts';
import { PROCESS_PLACES, TABLE_PLACES } from '../support/hung/process-places.ts';
import { failuresAt } from '../support/hung/property.ts';
import { CAN_HANG, unlessHangs } from '../support/hung-mount.ts';

/** Only places whose name contains this. */
const ONLY = process.env.HUNG_ONLY ?? '';
const chosen = (places: Place[]) => places.filter(({ name }) => name.includes(ONLY));

describe.runIf(CAN_HANG)(`beside a file system that hangs, everything else goes on${unlessHangs}`, () => {
  it('where it is in the way of a process', async () => {
    expect(await failuresAt(chosen(PROCESS_PLACES))).toEqual([]);
  });

  it('where it is in the way of a file operation', async () => {
    expect(await failuresAt(chosen(FILE_PLACES))).toEqual([]);
  });

  it('where a pipe is full', async () => {
    expect(await failuresAt(chosen(PIPE_PLACES))).toEqual([]);
  });

  it('where it makes others wait who ask about a process', async () => {
    expect(await failuresAt(chosen(TABLE_PLACES))).toEqual([]);
  });

  it("where it is one of the machine's files, is watched, or is needed for a start", async () => {
    expect(await failuresAt(chosen(MACHINE_PLACES))).toEqual([]);
  });
});
