import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readPacketKind } from '../../../src/network/queue/packet.ts';

const TCP = 6;
const UDP = 17;

interface Addressing {
  protocol: number;
  from: number;
  to: number;
  fragment?: number;
}

function ipv4({ protocol, from, to, fragment = 0 }: Addressing, options = 0): Buffer {
  const packet = Buffer.alloc(20 + options + 8);
  packet[0] = 0x40 | ((20 + options) / 4);
  packet.writeUInt16BE(fragment, 6);
  packet[9] = protocol;
  packet.writeUInt32BE(0x0a000001, 12);
  packet.writeUInt32BE(0x0a000002, 16);
  packet.writeUInt16BE(from, 20 + options);
  packet.writeUInt16BE(to, 22 + options);
  return packet;
}

function ipv6({ protocol, from, to }: Addressing, extensions: number[] = []): Buffer {
  const chain = [...extensions, protocol];
  const packet = Buffer.alloc(40 + extensions.length * 8 + 8);
  packet[0] = 0x60;
  packet[6] = chain[0] as number;
  packet[23] = 1;
  packet[39] = 2;
  for (const [i] of extensions.entries()) packet[40 + i * 8] = chain[i + 1] as number;
  packet.writeUInt16BE(from, 40 + extensions.length * 8);
  packet.writeUInt16BE(to, 42 + extensions.length * 8);
  return packet;
}

const kind = (packet: Buffer) => readPacketKind(packet, 0, packet.length);

describe('the kind of a packet', () => {
  it('is a stream for TCP, SCTP, ICMP and ICMPv6, and a datagram for everything else', () => {
    for (let protocol = 0; protocol < 256; protocol++) {
      const is_stream = [1, 6, 58, 132].includes(protocol);
      expect(kind(ipv4({ protocol, from: 1, to: 2 })).is_stream).toBe(is_stream);
      // Headers that extend IPv6 are followed to the protocol behind them.
      if (![0, 43, 44, 60, 135, 139, 140].includes(protocol)) {
        expect(kind(ipv6({ protocol, from: 1, to: 2 })).is_stream).toBe(is_stream);
        expect(kind(ipv6({ protocol, from: 1, to: 2 }, [0, 60])).is_stream).toBe(is_stream);
      }
    }
  });

  it('has one flow for a connection and others for its neighbours', () => {
    const flows = new Set<number>();
    for (let port = 0; port < 2_000; port++) {
      for (const packet of [ipv4, ipv6]) {
        const { flow } = kind(packet({ protocol: TCP, from: 1_024 + port, to: 443 }));
        expect(kind(packet({ protocol: TCP, from: 1_024 + port, to: 443 })).flow).toBe(flow);
        flows.add(flow);
      }
    }
    expect(flows.size).toBeGreaterThan(3_990);
    expect(kind(ipv4({ protocol: TCP, from: 9, to: 9 }, 8)).flow).toBe(
      kind(ipv4({ protocol: TCP, from: 9, to: 9 })).flow,
    );
    expect(kind(ipv4({ protocol: UDP, from: 9, to: 9 })).flow).not.toBe(
      kind(ipv4({ protocol: TCP, from: 9, to: 9 })).flow,
    );
  });

  it('keeps the fragments of a packet in one flow', () => {
    const first = kind(ipv4({ protocol: TCP, from: 9, to: 9, fragment: 0x2000 }));
    const second = kind(ipv4({ protocol: TCP, from: 77, to: 78, fragment: 0x2001 }));
    const last = kind(ipv4({ protocol: TCP, from: 5, to: 6, fragment: 2 }));
    expect([second.flow, last.flow]).toEqual([first.flow, first.flow]);
    expect(kind(ipv6({ protocol: TCP, from: 1, to: 2 }, [44])).flow).toBe(
      kind(ipv6({ protocol: TCP, from: 3, to: 4 }, [44])).flow,
    );
  });

  it('can be told of any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        const { flow } = kind(Buffer.from(bytes));
        expect(flow).toBe(flow >>> 0);
      }),
    );
    expect(kind(Buffer.alloc(0)).is_stream).toBe(false);
  });
});
