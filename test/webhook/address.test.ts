import { describe, expect, it } from 'vitest';
import {
  AddressRanges,
  cidrText,
  embeddedIPv4,
  groupsOf,
  parseAddress,
  parseCidr,
} from '../../src/webhook/address.ts';

const addressOf = (text: string) => {
  const address = parseAddress(text);
  if (!address) throw new Error(`${text} is not an address`);
  return address;
};

describe('an address', () => {
  it('is read with brackets and a zone', () => {
    expect(addressOf('[::1]')).toEqual({ family: 'ipv6', text: '::1' });
    expect(groupsOf(addressOf('[::1]'))).toEqual([0, 0, 0, 0, 0, 0, 0, 1]);
    expect(addressOf('fe80::1%eth0')).toEqual(addressOf('fe80::1'));
    expect(addressOf('::ffff:1.2.3.4')).toEqual(addressOf('::ffff:102:304'));
  });

  it.each(['', 'a.example', '1.2.3', '1.2.3.256', ':::'])('is not %j', (text) => {
    expect(parseAddress(text)).toBeNull();
  });

  it('may hold an IPv4 address', () => {
    expect(embeddedIPv4(addressOf('::ffff:1.2.3.4'), 0)).toEqual(addressOf('1.2.3.4'));
    expect(embeddedIPv4(addressOf('2002:102:304::'), 80)).toEqual(addressOf('1.2.3.4'));
  });
});

describe('a range of addresses', () => {
  it.each([
    ['10.0.0.0/8', '10.255.0.1', '11.0.0.0'],
    ['192.168.1.77/24', '192.168.1.1', '192.168.2.1'],
    ['1.2.3.4', '1.2.3.4', '1.2.3.5'],
    ['fd00::/8', 'fdff::1', 'fe00::1'],
    ['0.0.0.0/0', '255.255.255.255', '::1'],
    ['0.0.0.0/0', '1.2.3.4', '::ffff:1.2.3.4'],
    ['::/0', '::ffff:1.2.3.4', '1.2.3.4'],
  ])('%s contains %s and not %s', (text, inside, outside) => {
    const range = parseCidr(text);
    if (!range) throw new Error(`${text} is not a range`);
    const ranges = new AddressRanges([range]);
    expect(ranges.contains(addressOf(inside))).toBe(true);
    expect(ranges.contains(addressOf(outside))).toBe(false);
    expect(parseCidr(cidrText(range))).toEqual(range);
  });

  it.each(['10.0.0.0/33', '10.0.0.0/08', '10.0.0.0/8/8', '[::1]/8', '::/129', '10.0.0.0/', 'a/8'])(
    'is not %j',
    (text) => {
      expect(parseCidr(text)).toBeNull();
    },
  );
});
