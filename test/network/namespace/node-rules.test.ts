import { describe, expect, it } from 'vitest';
import { flowBounds } from '../../../src/network/flows/flow-bounds.ts';
import { linkOf } from '../../../src/network/namespace/addresses.ts';
import { nodeGroup } from '../../../src/network/namespace/node-group.ts';
import { forgetText, nodeRulesText } from '../../../src/network/namespace/node-rules.ts';

const group = nodeGroup('/data');

describe("a group's rules on the node", () => {
  it('are replaced without removing a link that another manager of the group has added', () => {
    const text = nodeRulesText({
      group,
      links: [linkOf(300)],
      teams: new Map([['vsbx300', 7]]),
      flows: { bounds: flowBounds(1_000), has_timeouts: true },
      allowed_cidrs: ['10.0.0.0/8', 'fd00::/8', '10.251.2.0/24', '169.254.1.1/32'],
      name_servers: ['192.0.2.53'],
      local_name_server: null,
    });
    expect(text).not.toMatch(/delete|destroy/);
    expect(text).not.toMatch(/flush set \S+ \S+ ipv/);
    expect(text).toContain(`add element inet ${group.table} ipv4 { "vsbx300" . 10.251.2.89 }`);
    expect(text).toContain(`add element inet ${group.table} teams { "vsbx300" : 7 }`);
    expect(text).toContain(`add element inet ${group.table} allowed4 { 10.0.0.0/8 }`);
    expect(text).toContain(`add element inet ${group.table} allowed6 { 64:ff9b::a00:0/104 }`);
    expect(text).toContain(`add element inet ${group.table} allowed6 { 2002:a00:0::/24 }`);
    expect(text).toContain(`add element inet ${group.table} named4 { 10.251.2.0/24 }`);
    expect(text).toContain(`add element inet ${group.table} named4 { 169.254.1.1/32 }`);
    expect(text).toContain(`add element inet ${group.table} allowed6 { fd00::/8 }`);
    expect(text).toContain(`add element inet ${group.table} dns4 { 192.0.2.53 }`);
  });

  it('are for its own links alone', () => {
    const other = nodeGroup('/other');
    expect(other.table).not.toBe(group.table);
    expect(other.prefix).not.toBe(group.prefix);
    expect(other.number).not.toBe(group.number);
    expect(nodeGroup('/data')).toEqual(group);
  });

  it('forget a link also where it was never admitted', () => {
    const lines = forgetText(group, linkOf(7), false).trim().split('\n');
    const elements = (verb: string) =>
      lines.filter((line) => line.startsWith(verb)).map((line) => line.split(' ').slice(2, 5).join(' '));
    expect(elements('delete element')).toHaveLength(6);
    expect(elements('delete element').toSorted()).toEqual(elements('add element').toSorted());
  });
});
