import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { nodeGroup } from '../../../src/network/namespace/node-group.ts';
import { NetworkRuntime } from '../../../src/network/network-runtime.ts';
import { bandwidth, LendingAuthority, UNLIMITED } from './test-node.ts';

/** A program with a network runtime and one sandbox, to be killed. Arguments: node, data directory, sandbox, rate, burst. */
const [node_namespace = '', data_dir = '', sandbox_id = '', rate = '0', burst = '0'] = process.argv.slice(2);

const network = new NetworkRuntime({
  group: nodeGroup(data_dir),
  authority: new LendingAuthority(),
  is_fail_open: false,
  allowed_cidrs: [],
  node_namespace,
  clock: systemClock,
  log: createLog('silent'),
});
await network.start();
await network.attach({
  sandbox_id,
  team_id: 'team',
  bandwidth: bandwidth(Number(rate), Number(burst)),
  team_limits: UNLIMITED,
});
console.log('attached');
process.stdin.resume();
