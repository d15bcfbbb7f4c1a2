import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AddressRanges, type Cidr, cidrText, parseAddress, parseCidr } from '../../src/webhook/address.ts';
import { AddressGuard, checkWebhookUrl } from '../../src/webhook/address-guard.ts';

const strict = new AddressGuard([]);
const allowing = (...ranges: string[]) =>
  new AddressGuard(
    ranges.map((range) => {
      const cidr = parseCidr(range);
      if (!cidr) throw new Error(range);
      return cidr;
    }),
  );

const PUBLIC = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '168.63.129.15',
  '169.253.255.255',
  '172.15.255.255',
  '172.32.0.0',
  '192.167.255.255',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2a00:1450:4001:81b::200e',
  '64:ff9b::808:808',
  '2002:808:808::1',
  '::ffff:8.8.8.8',
];

const REFUSED = [
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '100.64.0.1',
  '100.100.100.200',
  '100.127.255.255',
  '127.0.0.1',
  '127.255.255.255',
  '168.63.129.16',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.192',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.1.1',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.7',
  '203.0.113.7',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::7f00:1',
  '::ffff:127.0.0.1',
  '::ffff:a9fe:a9fe',
  '::ffff:0:127.0.0.1',
  '64:ff9b::127.0.0.1',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::808:808',
  '100::1',
  '2001::1',
  '2001:0:4136:e378:8000:63bf:3fff:fdd2',
  '2001:10::1',
  '2001:db8::1',
  '2002:7f00:1::',
  '2002:a9fe:a9fe::1',
  '2002:c0a8:101::1',
  '2606:4700::5efe:10.0.0.1',
  '2606:4700::200:5efe:169.254.169.254',
  '3fff::1',
  '5f00::1',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'fe80::1%eth0',
  'febf::1',
  'fec0::1',
  'ff02::1',
];

describe('which addresses may be dialled', () => {
  it.each(PUBLIC)('%s may', (address) => {
    expect(strict.allows(address)).toBe(true);
  });

  it.each(REFUSED)('%s may not', (address) => {
    expect(strict.allows(address)).toBe(false);
  });

  it.each(['', 'localhost', '127.1', '2130706433', '1.2.3.4.5', '::g', '1.2.3.4/32'])(
    '%j is no address and may not',
    (text) => {
      expect(strict.allows(text)).toBe(false);
    },
  );
});

describe('what the operator lists', () => {
  it('may be dialled, and nothing beside it', () => {
    const guard = allowing('10.1.0.0/16', 'fd00:1::/32', '127.0.0.1');
    expect(['10.1.2.3', 'fd00:1::5', '127.0.0.1'].every((each) => guard.allows(each))).toBe(true);
    expect(['10.2.0.1', 'fd00:2::5', '127.0.0.2', '::1'].some((each) => guard.allows(each))).toBe(false);
  });

  it('may be dialled in IPv6 clothes too', () => {
    const guard = allowing('10.0.0.0/8');
    expect(guard.allows('::ffff:10.1.2.3')).toBe(true);
    expect(guard.allows('64:ff9b::a01:203')).toBe(true);
    expect(guard.allows('::ffff:127.0.0.1')).toBe(false);
  });

  it.each(['0.0.0.0/0', '::/0'])('may be all of a family: %s', (range) => {
    const guard = allowing(range);
    expect(guard.allows('127.0.0.1')).toBe(range === '0.0.0.0/0');
    expect(guard.allows('::1')).toBe(range === '::/0');
  });

  it.each([
    '',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/08',
    '10.0.0/8',
    '::/129',
    'x/8',
    '10.0.0.0/8/8',
    '[::1]',
  ])('is refused where it is no range: %j', (text) => {
    expect(parseCidr(text)).toBeNull();
  });
});

const ipv4 = fc.tuple(...Array.from({ length: 4 }, () => fc.nat(255))).map((parts) => parts.join('.'));
const ipv6 = fc
  .array(fc.oneof(fc.constant(0), fc.nat(0xffff)), { minLength: 8, maxLength: 8 })
  .map((groups) => groups.map((group) => group.toString(16)).join(':'));

/** An address as its bits, most significant first, read without the code that is tested. */
function bitsOf(text: string): bigint {
  const dotted = /^(.*:)?(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  const low = dotted?.[2]?.split('.').reduce((bits, part) => (bits << 8n) | BigInt(part), 0n) ?? 0n;
  if (dotted && !dotted[1]) return low;
  const hex = dotted ? `${dotted[1]}${(low >> 16n).toString(16)}:${(low & 0xffffn).toString(16)}` : text;
  const [head = [], tail = []] = hex.split('::').map((part) => part.split(':').filter(Boolean));
  const groups = [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail];
  return groups.reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}

function spelled(bits: bigint, family: 'ipv4' | 'ipv6'): string {
  const [parts, width, radix, separator] =
    family === 'ipv4' ? ([4, 8, 10, '.'] as const) : ([8, 16, 16, ':'] as const);
  return Array.from({ length: parts }, (_, i) =>
    ((bits >> BigInt((parts - 1 - i) * width)) & ((1n << BigInt(width)) - 1n)).toString(radix),
  ).join(separator);
}

const NOT_PUBLIC_IPV4 = (
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 ' +
  '192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4'
).split(' ');

/** The guard's answer as bit arithmetic: an oracle for the platform's lists. */
function mayDial(bits: bigint, family: 'ipv4' | 'ipv6', allowed: string[]): boolean {
  const isIn = (range: string) => {
    const [start = '', length = ''] = range.split('/');
    const width = start.includes(':') ? 128 : 32;
    const above = BigInt(width - Number(length));
    return (width === 128) === (family === 'ipv6') && bitsOf(start) >> above === bits >> above;
  };
  if (allowed.some(isIn)) return true;
  if (family === 'ipv4') return !NOT_PUBLIC_IPV4.some(isIn);
  const carried = (above_end: bigint) => mayDial((bits >> above_end) & 0xffff_ffffn, 'ipv4', allowed);
  if (isIn('::ffff:0:0/96') || isIn('64:ff9b::/96')) return carried(0n);
  if (isIn('2002::/16')) return carried(80n);
  if (!isIn('2000::/3') || isIn('2001::/23') || isIn('2001:db8::/32') || isIn('3fff::/20')) return false;
  const identifier = (bits >> 32n) & 0xffff_ffffn;
  return (identifier !== 0x0000_5efen && identifier !== 0x0200_5efen) || carried(0n);
}

describe('a range of addresses', () => {
  it('holds the addresses whose first bits are its own', () => {
    const of = (address: fc.Arbitrary<string>, family: 'ipv4' | 'ipv6', width: number) =>
      fc.property(address, address, fc.nat(width), fc.nat(width), (start, other, length, shared) => {
        // Two random addresses hardly ever share a range: the other one begins as the first one does.
        const rest = BigInt(width - shared);
        const mixed = ((bitsOf(start) >> rest) << rest) | (bitsOf(other) & ((1n << rest) - 1n));
        const range = parseCidr(`${start}/${length}`);
        const address = parseAddress(spelled(mixed, family));
        const above = BigInt(width - length);
        expect(range && address && new AddressRanges([range]).contains(address)).toBe(
          bitsOf(start) >> above === mixed >> above,
        );
      });
    fc.assert(of(ipv4, 'ipv4', 32));
    fc.assert(of(ipv6, 'ipv6', 128));
  });
});

describe('any address', () => {
  const embedded = fc.oneof(
    ipv4,
    fc.constantFrom(...[...PUBLIC, ...REFUSED].filter((each) => !each.includes(':'))),
  );
  /** Addresses at the borders that the guard knows, with IPv4 addresses where they may be embedded. */
  const carriers = fc
    .record({
      range: fc.constantFrom(
        ...['::ffff:0:0/96', '64:ff9b::/96', '2002::/16', '2001::/32', '2001:db8::/32', '2606::/16', '::/0'],
      ),
      random: fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }),
      embedded: embedded.map(bitsOf),
      identifier: fc.constantFrom(0x0000_5efen, 0x0200_5efen, 0x0100_5efen, null),
      above_end: fc.constantFrom(0n, 80n),
    })
    .map(({ range, random, embedded, identifier, above_end }) => {
      const [start = '', length = ''] = range.split('/');
      const rest = (1n << BigInt(128 - Number(length))) - 1n;
      const put = (bits: bigint, at: bigint) => (random & ~(0xffff_ffffn << at)) | (bits << at);
      random = put(embedded, above_end);
      if (identifier !== null) random = put(identifier, 32n);
      return spelled((bitsOf(start) & ~rest) | (random & rest), 'ipv6');
    });
  const lists = fc.subarray([
    '10.0.0.0/8',
    '127.0.0.1/32',
    'fd00::/8',
    '::ffff:10.0.0.0/104',
    '64:ff9b::/96',
  ]);

  it('is judged by its bits', () => {
    fc.assert(
      fc.property(fc.oneof(embedded, ipv6, carriers), lists, (text, allowed) => {
        const family = text.includes(':') ? 'ipv6' : 'ipv4';
        const may = mayDial(bitsOf(text), family, allowed);
        expect([text, allowing(...allowed).allows(text)]).toEqual([text, may]);
      }),
      { numRuns: 3_000 },
    );
  });
});

/** Every way in which a URL may spell an IPv4 address. */
const spellings = fc
  .tuple(
    fc.constantFrom(...REFUSED.filter((each) => /^\d+\.\d+\.\d+\.\d+$/.test(each))),
    fc.array(fc.constantFrom('decimal', 'octal', 'hex'), { minLength: 4, maxLength: 4 }),
    fc.integer({ min: 1, max: 4 }),
    fc.boolean(),
  )
  .map(([address, radixes, count, has_dot]) => {
    const parts = address.split('.').map(Number);
    const last = parts.slice(count - 1).reduce((sum, part) => sum * 256 + part, 0);
    const texts = [...parts.slice(0, count - 1), last].map((part, i) => {
      if (radixes[i] === 'octal') return `0${part.toString(8)}`;
      return radixes[i] === 'hex' ? `0x${part.toString(16)}` : String(part);
    });
    return texts.join('.') + (has_dot ? '.' : '');
  });

describe("a webhook's URL at claim", () => {
  it('is refused where its host is an address that is not public, however it is spelled', () => {
    fc.assert(
      fc.property(spellings, (host) => {
        expect(checkWebhookUrl(`http://${host}:8080/hook`, strict)).toEqual({
          fault: 'must not point to a non-public address',
        });
      }),
    );
    const ipv4_only = REFUSED.filter((each) => /^\d/.test(each) && !each.includes(':'));
    for (const address of ipv4_only) {
      expect(checkWebhookUrl(`https://[::ffff:${address}]/`, strict)).toHaveProperty('fault');
      expect(checkWebhookUrl(`https://[64:ff9b::${address}]/`, strict)).toHaveProperty('fault');
    }
    for (const host of ['１２７.0.0.1', '127。0。0。1', '%31%32%37.0.0.1', '[::]', '[::1]']) {
      expect(checkWebhookUrl(`http://${host}/`, strict)).toHaveProperty('fault');
    }
  });

  it.each([
    'ftp://example.com/',
    'hook',
    '',
    'http://',
    'https://u:p@example.com/',
    'https://u@example.com/',
  ])('is refused: %j', (text) => {
    expect(checkWebhookUrl(text, strict)).toHaveProperty('fault');
  });

  it.each([
    ['https://example.com', 'https://example.com/'],
    ['http://EXAMPLE.com:80/Hook?a=b%20c#part', 'http://example.com/Hook?a=b%20c'],
    ['https://134744072/', 'https://8.8.8.8/'],
  ])('is taken: %s', (text, url) => {
    expect(checkWebhookUrl(text, strict)).toEqual({ url });
  });

  it('may be an address that the operator lists', () => {
    const guard = allowing('127.0.0.0/8');
    expect(checkWebhookUrl('http://2130706433:9000/', guard)).toEqual({ url: 'http://127.0.0.1:9000/' });
  });
});

describe('a name that always means this machine', () => {
  it.each(['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'a.b.localhost.'])(
    'is refused at claim: %s',
    (host) => {
      expect(checkWebhookUrl(`http://${host}/x`, strict)).toEqual({
        fault: 'must not point to a non-public address',
      });
      expect(checkWebhookUrl(`http://${host}/x`, allowing('127.0.0.0/8'))).toHaveProperty('url');
      expect(checkWebhookUrl(`http://${host}/x`, allowing('::1'))).toHaveProperty('url');
    },
  );

  it.each(['localhost.example.com', 'notlocalhost', 'localhostx'])('is not %s', (host) => {
    expect(checkWebhookUrl(`http://${host}/x`, strict)).toHaveProperty('url');
  });
});

describe('a range as text', () => {
  it('is read as the same range again', () => {
    const octets = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 4, maxLength: 4 });
    const groups = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 });
    const ranges = fc.oneof(
      fc
        .tuple(octets, fc.integer({ min: 0, max: 32 }))
        .map(([parts, length]) => `${parts.join('.')}/${length}`),
      fc
        .tuple(groups, fc.integer({ min: 0, max: 128 }))
        .map(([parts, length]) => `${parts.map((part) => part.toString(16)).join(':')}/${length}`),
    );
    fc.assert(
      fc.property(ranges, (text) => {
        const cidr = parseCidr(text) as Cidr;
        expect(cidrText(cidr)).toBe(text);
        expect(parseCidr(cidrText(cidr))).toEqual(cidr);
      }),
    );
  });
});
