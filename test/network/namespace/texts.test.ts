import { describe, expect, it } from 'vitest';
import { queueText } from '../../../src/network/namespace/texts.ts';

describe('the texts for the packet filter', () => {
  it('queue the metered directions alone, and never let packets by a queue without a reader', () => {
    const both = queueText({ egress: true, ingress: true });
    expect(both).toContain('-A POSTROUTING -o eth0 -j NFQUEUE --queue-num 1\n');
    expect(both).toContain('-A PREROUTING -i eth0 -j NFQUEUE --queue-num 2\n');
    // Before them, because the first queue takes the packet.
    expect(both).toMatch(/-p udp -j NFQUEUE --queue-num 3\n-A POSTROUTING -o eth0 -j NFQUEUE --queue-num 1/);
    expect(both).toMatch(/-p udp -j NFQUEUE --queue-num 4\n-A PREROUTING -i eth0 -j NFQUEUE --queue-num 2/);
    expect(both).not.toContain('bypass');
    expect(queueText({ egress: true, ingress: false })).not.toContain('PREROUTING -i');
    expect(queueText({ egress: false, ingress: false })).not.toContain('NFQUEUE');
  });
});
