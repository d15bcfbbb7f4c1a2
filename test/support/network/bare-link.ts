import { runSync } from '../run-sync.ts';
import type { TestNode } from './test-node.ts';

const ADDRESSES = { node: '10.250.0.0', peer: '10.250.0.1' };

/** A namespace with a plain link to a node, which masks its address: the network without a meter. */
export class BareLink {
  readonly namespace: string;

  constructor({ topology: { id, node } }: TestNode) {
    this.namespace = `bare-${id}`;
    const inside = ['ip', '-n', this.namespace];
    runSync('ip', 'netns', 'add', this.namespace);
    runSync(
      ...['ip', '-n', node, 'link', 'add', 'bare', 'type', 'veth'],
      ...['peer', 'name', 'eth0', 'netns', this.namespace],
    );
    runSync('ip', '-n', node, 'address', 'add', `${ADDRESSES.node}/31`, 'dev', 'bare');
    runSync('ip', '-n', node, 'link', 'set', 'bare', 'up');
    runSync(...inside, 'link', 'set', 'lo', 'up');
    runSync(...inside, 'address', 'add', `${ADDRESSES.peer}/31`, 'dev', 'eth0');
    runSync(...inside, 'link', 'set', 'eth0', 'up');
    runSync(...inside, 'route', 'add', 'default', 'via', ADDRESSES.node);
    const chain = 'type nat hook postrouting priority 100;';
    const rules = `table ip bare { chain out { ${chain} ip saddr ${ADDRESSES.peer} masquerade; }; }`;
    runSync('ip', 'netns', 'exec', node, 'nft', rules);
  }

  remove(): void {
    runSync('ip', 'netns', 'delete', this.namespace);
  }
}
