/** How many bytes of a packet are needed to read it: both address families' headers, short options, and the ports. */
export const COPIED_BYTES = 64;

const TCP = 6;
const UDP = 17;
const ICMP = 1;
const ICMP6 = 58;
const SCTP = 132;
const FRAGMENT = 44;
/** Extension headers of IPv6 whose second byte is their length in units of 8 bytes, the first 8 not counted. */
const EXTENSIONS = new Set([0, 43, 60, 135, 139, 140]);

/** The properties of a packet that decide how a lane handles it. */
export interface PacketKind {
  /** Whether it waits for its tokens: TCP, SCTP, ICMP, ICMPv6. Everything else passes at once or is dropped. */
  is_stream: boolean;
  /** A hash of addresses, protocol and ports: equal for all packets of a connection. */
  flow: number;
}

/**
 * Parses the start of an IP packet. Anything that is not IP, or is too short, counts as a datagram of its own flow.
 * Source: contract section 7, "Network".
 */
export function readPacketKind(bytes: Buffer, start: number, end: number): PacketKind {
  const version = start < end ? (bytes[start] as number) >> 4 : 0;
  if (version === 4 && end - start >= 20) return readIpv4(bytes, start, end);
  if (version === 6 && end - start >= 40) return readIpv6(bytes, start, end);
  return { is_stream: false, flow: version };
}

function readIpv4(bytes: Buffer, start: number, end: number): PacketKind {
  const protocol = bytes[start + 9] as number;
  const ports = start + ((bytes[start] as number) & 0x0f) * 4;
  // Later fragments have no ports, and all fragments of a packet must stay in one flow.
  const is_fragment = (bytes.readUInt16BE(start + 6) & 0x3fff) !== 0;
  return kindOf(bytes, start + 12, start + 20, protocol, is_fragment ? end : ports, end);
}

function readIpv6(bytes: Buffer, start: number, end: number): PacketKind {
  let protocol = bytes[start + 6] as number;
  let at = start + 40;
  let is_fragment = false;
  while (at + 8 <= end && (EXTENSIONS.has(protocol) || protocol === FRAGMENT)) {
    is_fragment ||= protocol === FRAGMENT;
    const size = protocol === FRAGMENT ? 8 : ((bytes[at + 1] as number) + 1) * 8;
    protocol = bytes[at] as number;
    at += size;
  }
  return kindOf(bytes, start + 8, start + 40, protocol, is_fragment ? end : at, end);
}

function kindOf(
  bytes: Buffer,
  addresses: number,
  addresses_end: number,
  protocol: number,
  ports: number,
  end: number,
): PacketKind {
  let hash = mixed(0x811c9dc5, protocol);
  for (let at = addresses; at < addresses_end; at += 4) hash = mixed(hash, bytes.readInt32BE(at));
  const has_ports = protocol === TCP || protocol === UDP || protocol === SCTP;
  if (has_ports && ports + 4 <= end) hash = mixed(hash, bytes.readInt32BE(ports));
  const is_stream = protocol === TCP || protocol === SCTP || protocol === ICMP || protocol === ICMP6;
  return { is_stream, flow: (hash ^ (hash >>> 15)) >>> 0 };
}

function mixed(hash: number, word: number): number {
  const next = Math.imul(hash ^ word, 0x01000193);
  return Math.imul(next ^ (next >>> 16), 0x85ebca6b);
}
