import { isIPv4, isIPv6 } from 'node:net';
import { describe, expect, it } from 'vitest';
import { linkIndex, linkNamed, linkOf, SANDBOXES_MAX } from '../../../src/network/namespace/addresses.ts';

describe('the addresses of a link', () => {
  it('are six of its own, and its name fits an interface', () => {
    const seen = new Set<string>();
    for (let index = 0; index < SANDBOXES_MAX; index++) {
      const link = linkOf(index);
      if (linkNamed(link.interface)?.index !== index) expect(link.interface).toBe(index);
      for (const { ipv4, ipv6, ethernet } of [link.node, link.sandbox]) {
        if (!isIPv4(ipv4) || !isIPv6(ipv6)) expect([ipv4, ipv6]).toBe(index);
        seen.add(ipv4).add(ipv6).add(ethernet);
      }
    }
    expect(seen.size).toBe(6 * SANDBOXES_MAX);
    expect(linkOf(SANDBOXES_MAX - 1).interface.length).toBeLessThanOrEqual(15);
    expect(linkOf(SANDBOXES_MAX - 1).sandbox.ipv4).toBe('10.251.255.255');
  });

  it('are not read from names of others', () => {
    for (const name of ['eth0', 'vsbx', 'vsbx1x', 'xvsbx1', `vsbx${SANDBOXES_MAX}`])
      expect(linkNamed(name)).toBeNull();
  });

  it('are tried in turn, from a number that the sandbox decides, until all were', () => {
    const [first, second] = [linkIndex('sbx-a', 0), linkIndex('sbx-b', 0)];
    expect(first).not.toBe(second);
    expect(linkIndex('sbx-a', 1)).toBe((first + 1) % SANDBOXES_MAX);
    expect(linkIndex('sbx-a', SANDBOXES_MAX)).toBe(first);
  });
});
