import { EMBEDDING_IPV6, NON_PUBLIC_IPV4, NON_PUBLIC_IPV6, PUBLIC_IPV6 } from '../contract/address-ranges.ts';
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

const REFUSED_IPV4 = ranges(...NON_PUBLIC_IPV4);
const REFUSED_IPV6 = ranges(...NON_PUBLIC_IPV6);
const ADMITTED_IPV6 = ranges(PUBLIC_IPV6);
const EMBEDDING = EMBEDDING_IPV6.map(({ range, above_end_bits }) => ({
  range: ranges(range),
  above_end_bits,
}));

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
    if (!ADMITTED_IPV6.contains(address) || REFUSED_IPV6.contains(address)) return false;
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
