import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bindRequest,
  configureRequest,
  DROP,
  type QueuedPacket,
  readAnswer,
  readPackets,
  VERDICT_BYTES,
  writeVerdict,
} from '../../../src/network/queue/netlink.ts';

/** A message as the kernel writes it. */
function message(type: number, queue: number, attributes: [number, Buffer][]): Buffer {
  const body = Buffer.concat(
    attributes.map(([kind, value]) => {
      const padded = Buffer.alloc(4 + Math.ceil(value.length / 4) * 4);
      padded.writeUInt16LE(4 + value.length);
      padded.writeUInt16LE(kind, 2);
      value.copy(padded, 4);
      return padded;
    }),
  );
  const header = Buffer.alloc(20);
  header.writeUInt32LE(20 + body.length);
  header.writeUInt16LE(type, 4);
  header.writeUInt16BE(queue, 18);
  return Buffer.concat([header, body]);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function read(bytes: Buffer): QueuedPacket[] {
  const packets: QueuedPacket[] = [];
  readPackets(bytes, bytes.length, (packet) => packets.push(packet));
  return packets;
}

const PACKET = 0x300;

describe('the messages of a packet queue', () => {
  it('tell of each packet its queue, its name, its whole length and where its first bytes are', () => {
    const packets = fc.array(
      fc.record({
        queue: fc.nat(65_535),
        id: fc.nat(2 ** 32 - 1),
        payload: fc.uint8Array({ minLength: 1, maxLength: 64 }),
        full_length: fc.option(fc.nat(70_000)),
        others: fc.array(fc.tuple(fc.integer({ min: 14, max: 40 }), fc.uint8Array({ maxLength: 20 })), {
          maxLength: 4,
        }),
      }),
      { maxLength: 4 },
    );
    fc.assert(
      fc.property(packets, (all) => {
        const bytes = Buffer.concat(
          all.map(({ queue, id, payload, full_length, others }) =>
            message(PACKET, queue, [
              ...others.map(([kind, value]): [number, Buffer] => [kind, Buffer.from(value)]),
              [1, Buffer.concat([u32(id), Buffer.from([8, 0, 4])])],
              ...(full_length === null ? [] : [[13, u32(full_length)] as [number, Buffer]]),
              [10, Buffer.from(payload)],
            ]),
          ),
        );
        const told = read(bytes).map(({ queue, id, length, start, end }) => ({
          queue,
          id,
          length,
          payload: [...bytes.subarray(start, end)],
        }));
        const expected = all.map(({ queue, id, payload, full_length }) => ({
          queue,
          id,
          length: full_length ?? payload.length,
          payload: [...payload],
        }));
        expect(told).toEqual(expected);
      }),
    );
  });

  it('of another kind, cut off or made up are no packets', () => {
    const whole = message(PACKET, 1, [[1, Buffer.concat([u32(7), Buffer.alloc(3)])]]);
    expect(read(whole)).toHaveLength(1);
    expect(read(whole.subarray(0, whole.length - 1))).toEqual([]);
    expect(read(message(0x301, 1, [[1, Buffer.alloc(7)]]))).toEqual([]);
    expect(read(message(PACKET, 1, []))).toEqual([]);
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void read(Buffer.from(bytes))));
  });

  it('hold a verdict in 32 bytes', () => {
    const into = Buffer.alloc(2 * VERDICT_BYTES, 0xff);
    writeVerdict(into, VERDICT_BYTES, 2, 0xfeedbeef, DROP);
    const bytes = into.subarray(VERDICT_BYTES);
    expect(bytes.toString('hex')).toBe(
      '200000000103010000000000000000000000000' + '20c00020000000000feedbeef',
    );
  });

  it('open a queue that never passes what it cannot queue', () => {
    expect(bindRequest(3).readUInt16BE(18)).toBe(3);
    const settings = { queue: 3, is_whole: true, copied_bytes: 64, packets_max: 1_024 };
    const request = configureRequest(settings).toString('hex');
    // The flags under the mask: segments whole, and fail-open off.
    expect(request).toContain(`08000400${'00000005'}08000500${'00000004'}`);
    expect(configureRequest({ ...settings, is_whole: false }).toString('hex')).toContain(
      `08000400${'00000005'}08000500${'00000000'}`,
    );
    expect(request).toContain(`08000300${'00000400'}`);
    expect(request).toContain(`09000200${'00000040'}02`);
  });

  it('answer with 0 or an error number', () => {
    const answer = Buffer.alloc(36);
    answer.writeUInt32LE(36);
    answer.writeUInt16LE(2, 4);
    expect(readAnswer(answer, 36)).toBe(0);
    answer.writeInt32LE(-16, 16);
    expect(readAnswer(answer, 36)).toBe(16);
    expect(readAnswer(message(PACKET, 1, []), 20)).toBeNull();
  });
});
