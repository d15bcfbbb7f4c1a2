import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isVolatile } from '../../src/daemon/run.ts';
import { scratchFolder } from '../support/scratch.ts';

describe('a state directory', () => {
  it('in memory is volatile', () => {
    expect(isVolatile('/dev/shm')).toBe(true);
  });

  it('on another file system is not', () => {
    expect(isVolatile('/proc/self')).toBe(false);
  });

  it('that does not exist is not, because its first use reports that', () => {
    expect(isVolatile(join(scratchFolder(), 'missing'))).toBe(false);
  });
});
