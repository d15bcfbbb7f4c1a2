import { describe, expect, it } from 'vitest';
import { linkOf } from '../../../src/network/namespace/addresses.ts';
import { forgetText, nodeRulesText, queueText } from '../../../src/network/namespace/texts.ts';

describe('the texts for the packet filter', () => {
  it('queue the metered directions alone, and never let packets by a queue without a reader', () => {
    const both = queueText({ egress: true, ingress: true });
    expect(both).toContain('-A POSTROUTING -o eth0 -j NFQUEUE --queue-num 1\n');
    expect(both).toContain('-A PREROUTING -i eth0 -j NFQUEUE --queue-num 2\n');
    expect(both).not.toContain('bypass');
    expect(queueText({ egress: true, ingress: false })).not.toContain('PREROUTING -i');
    expect(queueText({ egress: false, ingress: false })).not.toContain('NFQUEUE');
  });

  it('replace the rules of the node in one step, with the sandboxes that are there', () => {
    const text = nodeRulesText({
      links: [linkOf(0), linkOf(300)],
      allowed_cidrs: ['10.0.0.0/8', 'fd00::/8'],
    });
    expect(text.startsWith('table inet sandboxes\ndelete table inet sandboxes\ntable inet sandboxes {')).toBe(
      true,
    );
    expect(text).toContain('"vsbx0" . 10.251.0.1, "vsbx300" . 10.251.2.89');
    expect(text).toMatch(/set allowed4 .* elements = \{ 10\.0\.0\.0\/8 \}/);
    expect(text).toMatch(/set allowed6 .* elements = \{ fd00::\/8 \}/);
    expect(nodeRulesText({ links: [], allowed_cidrs: [] })).not.toContain('elements');
  });

  it('forget a link also where it was never admitted', () => {
    const lines = forgetText(linkOf(7)).trim().split('\n');
    expect(lines.filter((line) => line.startsWith('add element'))).toHaveLength(2);
    expect(lines.filter((line) => line.startsWith('delete element'))).toHaveLength(2);
  });
});
