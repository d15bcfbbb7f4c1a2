import {
  AddressRanges,
  type Cidr,
  embeddedIPv4,
  groupsOf,
  type IpAddress,
  parseAddress,
  parseCidr,
} from './address.ts';

const ranges = (...texts: string[]): AddressRanges =>
  new AddressRanges(
    texts.map((text) => {
      const parsed = parseCidr(text);
      if (!parsed) throw new TypeError(`${text} is not an address range`);
      return parsed;
    }),
  );

/** IPv4 ranges that hold no public hosts. Source: IANA's registry of special purpose addresses. */
const REFUSED_IPV4 = ranges(
  '0.0.0.0/8', // this network, unspecified
  '10.0.0.0/8', // private
  '100.64.0.0/10', // shared, and a cloud's metadata
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // a cloud's metadata, in public clothes
  '169.254.0.0/16', // link-local, and metadata
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // relays of 6to4
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
);

/** The range of public hosts; everything outside is loopback, link-local, unique local, multicast or reserved. */
const PUBLIC_IPV6 = ranges('2000::/3');

const REFUSED_IPV6 = ranges(
  '2001::/23', // protocol assignments, Teredo
  '2001:db8::/32', // documentation
  '3fff::/20', // documentation
);

/** IPv6 ranges whose addresses lead to the IPv4 address in them, `above_end_bits` above their end. */
const EMBEDDING = [
  { range: ranges('::ffff:0:0/96'), above_end_bits: 0 },
  { range: ranges('64:ff9b::/96'), above_end_bits: 0 },
  { range: ranges('2002::/16'), above_end_bits: 80 },
];

/** How ISATAP's interface identifiers begin, without and with the universal bit. */
const ISATAP = [
  [0x0000, 0x5efe],
  [0x0200, 0x5efe],
];

/** Source: RFC 6761, section 6.3. */
const LOCALHOST = /^(.+\.)?localhost\.?$/i;

/**
 * Decides which addresses may be dialled: public ones, and those that the operator lists. An address that embeds an
 * IPv4 address is judged by that. Source: contract section 7, "Webhook URLs are checked".
 */
export class AddressGuard {
  readonly #allowed: AddressRanges;

  /** `allowed`: the ranges of `--allow-webhook-cidr`. */
  constructor(allowed: Cidr[]) {
    this.#allowed = new AddressRanges(allowed);
  }

  /** Whether an address, as a resolver or `URL.hostname` writes it, may be dialled; false for anything else. */
  allows(text: string): boolean {
    const address = parseAddress(text);
    return address !== null && this.#allows(address);
  }

  /**
   * Whether a URL's host is an address that must not be dialled, or a name that always means this machine. Other names
   * are judged by the addresses that they resolve to.
   */
  refusesLiteral(hostname: string): boolean {
    if (LOCALHOST.test(hostname)) return !this.allows('127.0.0.1') && !this.allows('::1');
    const address = parseAddress(hostname);
    return address !== null && !this.#allows(address);
  }

  #allows(address: IpAddress): boolean {
    if (this.#allowed.contains(address)) return true;
    if (address.family === 'ipv4') return !REFUSED_IPV4.contains(address);
    const embedding = EMBEDDING.find(({ range }) => range.contains(address));
    if (embedding) return this.#allows(embeddedIPv4(address, embedding.above_end_bits));
    if (!PUBLIC_IPV6.contains(address) || REFUSED_IPV6.contains(address)) return false;
    const [first, second] = groupsOf(address).slice(4);
    const is_isatap = ISATAP.some(([high, low]) => high === first && low === second);
    return !is_isatap || this.#allows(embeddedIPv4(address, 0));
  }
}

/**
 * Checks a webhook's URL at claim. Returns its normal form without the fragment, or what is wrong with it.
 * Source: contract section 7, "Webhook URLs are checked".
 */
export function checkWebhookUrl(text: string, guard: AddressGuard): { url: string } | { fault: string } {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) return { fault: 'must be an http or https URL' };
  if (url.username || url.password) return { fault: 'must not contain credentials' };
  if (guard.refusesLiteral(url.hostname)) return { fault: 'must not point to a non-public address' };
  url.hash = '';
  return { url: url.href };
}
