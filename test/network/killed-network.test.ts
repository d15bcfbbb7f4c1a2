import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { networkProblem } from '../../src/network/problem.ts';
import { until } from '../faults/support/until.ts';
import { bandwidth, TestNode, UNLIMITED, usageIn } from '../support/network/test-node.ts';
import { OUTSIDE } from '../support/network/topology.ts';
import { runSync } from '../support/run-sync.ts';

const problem = await networkProblem();
const why = problem === null ? '' : ` (skipped: ${problem})`;
const PROGRAM = join(import.meta.dirname, '../support/network/network-program.ts');
const MB = 1_000_000;
const RATE = 4 * MB;
const BURST = 65_536;

interface Put {
  bytes: number;
  sha256: string;
  sent_sha256: string;
}

/** What the kernel let out of a namespace, with nobody's help. */
function passed(namespace: string): number {
  const counters = ['nft', 'list', 'counter', 'inet', 'sandbox', 'egress'];
  return Number(/bytes (\d+)/.exec(runSync('ip', 'netns', 'exec', namespace, ...counters))?.[1]);
}

describe.skipIf(problem !== null)(`a sandbox whose network runtime is killed${why}`, () => {
  it('sends no byte until the next one, and then all of them, each counted', async () => {
    const node = await TestNode.start(onTestFinished);
    const sandbox_id = `${node.topology.id}-killed`;
    const namespace = `${node.group.prefix}${sandbox_id}`;
    const args = [PROGRAM, node.topology.node, node.topology.id, sandbox_id, String(RATE), String(BURST)];
    const program = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    onTestFinished(() => void program.kill('SIGKILL'));
    await once(program.stdout, 'data');
    const put = node.topology.traffic(namespace, 'put', OUTSIDE.ipv4, 6 * MB);
    await put.next();
    await until('some of it has passed', () => passed(namespace) > MB);
    program.kill('SIGKILL');
    await once(program, 'exit');
    const at_death = passed(namespace);
    // Datagrams find nobody either.
    await node.topology.traffic(namespace, 'datagrams', OUTSIDE.ipv4, 200, 500, 20).next();
    expect(passed(namespace)).toBe(at_death);

    const began = performance.now();
    await node.network.stop();
    node.network = node.runtime();
    await node.network.start();
    expect(node.network.list()).toEqual([sandbox_id]);
    const request = {
      sandbox_id,
      team_id: 'team',
      bandwidth: bandwidth(RATE, BURST),
      team_limits: UNLIMITED,
    };
    await node.network.takeOver(request);
    const { bytes, sha256, sent_sha256 } = await put.next<Put>();
    expect([bytes, sha256]).toEqual([6 * MB, sent_sha256]);
    const total = (await usageIn(node.network, sandbox_id))?.egress.passed_bytes as number;
    expect(total).toBe(passed(namespace));
    expect(total).toBeGreaterThan(6 * MB);
    const seconds = (performance.now() - began) / 1_000;
    expect(total - at_death).toBeLessThanOrEqual(BURST + RATE * seconds);
    await node.network.detach(sandbox_id);
  });
});
