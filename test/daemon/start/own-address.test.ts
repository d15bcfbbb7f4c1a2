import { describe, expect, it } from 'vitest';
import { isOwnAddress } from '../../../src/daemon/start/own-address.ts';

const LOOPBACK = ['127.0.0.1', '::1'];

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
    expect(await isOwnAddress(new URL(url), LOOPBACK, 49_983)).toBe(true);
  });

  it.each([
    'http://localhost:49984/',
    'http://127.0.0.1/',
    'http://127.0.0.2:49983/',
    'http://192.0.2.1:49983/',
    'http://[2001:db8::1]:49983/',
    'http://does-not-exist.invalid:49983/',
  ])('does not recognise itself in %s', async (url) => {
    expect(await isOwnAddress(new URL(url), LOOPBACK, 49_983)).toBe(false);
  });

  it('applies the default port of a URL without one', async () => {
    expect(await isOwnAddress(new URL('http://localhost/'), LOOPBACK, 80)).toBe(true);
    expect(await isOwnAddress(new URL('https://localhost/'), LOOPBACK, 443)).toBe(true);
    expect(await isOwnAddress(new URL('https://localhost/'), LOOPBACK, 80)).toBe(false);
  });
});

describe('a daemon that listens on every address', () => {
  it.each(['http://127.0.0.2:8080/', 'http://127.0.0.1:8080/', 'http://localhost:8080/'])(
    'recognises itself in %s',
    async (url) => {
      expect(await isOwnAddress(new URL(url), ['0.0.0.0'], 8_080)).toBe(true);
    },
  );
});
