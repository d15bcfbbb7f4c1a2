import { describe, expect, it } from 'vitest';
import { ApiError } from '../../src/contract/errors.ts';
import { DiskWait, isOwnAddress } from '../../src/daemon/core.ts';
import type { Resolve } from '../../src/webhook/resolver.ts';
import { ManualClock } from '../support/manual-clock.ts';

const resolve: Resolve = async (name) => {
  throw new Error(name);
};
const LOOPBACK = ['127.0.0.1', '::1'];

/** A wait that notes what is refused, and work that the disk refuses so many times. */
function waiting(refusals: number, details: object | undefined = { reason: 'no space left' }) {
  const clock = new ManualClock();
  const refused: string[] = [];
  const disk = new DiskWait(clock, async (reason) => {
    refused.push(`${reason}, ${disk.is_waiting ? 'waiting' : 'not waiting'}`);
  });
  let attempts = 0;
  const work = async () => {
    attempts += 1;
    if (attempts <= refusals) throw new ApiError('outbox_unavailable', 'The disk refuses.', details as never);
    return attempts;
  };
  return { clock, disk, refused, work, attempts: () => attempts };
}

describe('a step of the start that the disk refuses', () => {
  it('is repeated each second until the disk accepts it', async () => {
    const { clock, disk, work, attempts } = waiting(3);
    const done = disk.untilAccepted(work);
    await clock.advance(999);
    expect([attempts(), disk.is_waiting]).toEqual([1, true]);
    await clock.advance(2_001);
    expect(await done).toBe(4);
    expect(disk.is_waiting).toBe(false);
  });

  it('is reported with the reason each time, while the daemon waits', async () => {
    const { clock, disk, refused, work } = waiting(2);
    const done = disk.untilAccepted(work);
    await clock.advance(2_000);
    await done;
    expect(refused).toEqual(['no space left, waiting', 'no space left, waiting']);
  });

  it('is reported with its message if it has no reason', async () => {
    const { clock, disk, refused, work } = waiting(1, {});
    const done = disk.untilAccepted(work);
    await clock.advance(1_000);
    await done;
    expect(refused).toEqual(['The disk refuses., waiting']);
  });

  it('is not repeated after a cancel: its error is thrown', async () => {
    const { clock, disk, work, attempts } = waiting(Number.POSITIVE_INFINITY);
    const done = disk.untilAccepted(work);
    const failed = expect(done).rejects.toMatchObject({ code: 'outbox_unavailable' });
    await clock.advance(2_500);
    disk.cancel();
    await clock.advance(1_000);
    await failed;
    expect(attempts()).toBe(4);
  });

  it('is not repeated after any other error', async () => {
    const { disk, refused } = waiting(0);
    const work = () => Promise.reject(new Error('not a database'));
    await expect(disk.untilAccepted(work)).rejects.toThrow('not a database');
    expect([refused, disk.is_waiting]).toEqual([[], false]);
  });
});

describe('a daemon that listens on the loopback addresses', () => {
  it.each([
    'http://localhost:49983/',
    'http://LOCALHOST:49983/',
    'http://localhost.:49983/',
    'http://any.localhost:49983/hook',
    'http://127.0.0.1:49983/x?y#z',
    'http://127.1:49983/',
    'http://2130706433:49983/',
    'http://0x7f000001:49983/',
    'http://0177.0.0.1:49983/',
    'http://0.0.0.0:49983/',
    'http://0:49983/',
    'http://[::1]:49983/',
    'http://[0:0:0:0:0:0:0:1]:49983/',
    'http://[::]:49983/',
    'http://[::ffff:127.0.0.1]:49983/',
    'http://[::ffff:7f00:1]:49983/',
    'http://%6cocalhost:49983/',
    'http://①27.0.0.1:49983/',
    'https://localhost:49983/',
  ])('recognises itself in %s', async (url) => {
    expect(await isOwnAddress(new URL(url), LOOPBACK, 49_983, resolve)).toBe(true);
  });

  it.each([
    'http://localhost:49984/',
    'http://127.0.0.1/',
    'http://127.0.0.2:49983/',
    'http://192.0.2.1:49983/',
    'http://[2001:db8::1]:49983/',
    'http://does-not-exist.invalid:49983/',
  ])('does not recognise itself in %s', async (url) => {
    expect(await isOwnAddress(new URL(url), LOOPBACK, 49_983, resolve)).toBe(false);
  });

  it('applies the default port of a URL without one', async () => {
    expect(await isOwnAddress(new URL('http://localhost/'), LOOPBACK, 80, resolve)).toBe(true);
    expect(await isOwnAddress(new URL('https://localhost/'), LOOPBACK, 443, resolve)).toBe(true);
    expect(await isOwnAddress(new URL('https://localhost/'), LOOPBACK, 80, resolve)).toBe(false);
  });
});

describe('a daemon that listens on every address', () => {
  it.each(['http://127.0.0.2:8080/', 'http://127.0.0.1:8080/', 'http://localhost:8080/'])(
    'recognises itself in %s',
    async (url) => {
      expect(await isOwnAddress(new URL(url), ['0.0.0.0'], 8_080, resolve)).toBe(true);
    },
  );
});
