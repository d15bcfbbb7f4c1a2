import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { networkProblem } from '../../../src/network/problem.ts';
import { ChosenNetworks } from '../../../src/runtime/networks/chosen-networks.ts';
import { IS_ROOT } from '../../support/rights.ts';
import { Sandboxes, spec } from '../../support/runtime/sandboxes.ts';
import { scratchFolder } from '../../support/scratch.ts';

const problem = await networkProblem();
const SOURCE = join(import.meta.dirname, '../../../src');

/** What `--network` comes to without the right to make networks; what is logged, and the state or the error. */
async function chosenWithoutRights(network: string): Promise<string> {
  const program = `
    import { systemClock } from '${SOURCE}/base/clock.ts';
    import { createLog } from '${SOURCE}/base/log.ts';
    import { ChosenNetworks } from '${SOURCE}/runtime/networks/chosen-networks.ts';
    const log = createLog('info', { write: (line) => process.stdout.write(line) });
    const options = { network: '${network}', allowed_cidrs: [], is_fail_open: false, clock: systemClock, log };
    const networks = new ChosenNetworks(options);
    await networks.start('/tmp').then(() => console.log(networks.state()), ({ message }) => console.log(message));`;
  const drop = IS_ROOT ? ['setpriv', '--bounding-set', '-net_admin', '--inh-caps', '-net_admin'] : [];
  const [command = '', ...args] = [...drop, process.execPath, '--input-type=module', '-e', program];
  return (await promisify(execFile)(command, args)).stdout;
}

describe('--network where the rights for a metered one are missing', () => {
  it('auto is unmetered, and one warning says why', async () => {
    const output = await chosenWithoutRights('auto');
    expect(output.match(/"level":"warn"/g)).toHaveLength(1);
    expect(output).toMatch(/"reason":"it needs root, .*neither counted nor limited/);
    expect(output).toMatch(/mode: 'host-unmetered',\s+reason: 'it needs root, /);
  });

  it('metered is refused in one line', async () => {
    expect(await chosenWithoutRights('metered')).toMatch(/^--network metered: it needs root, [^\n]+\n$/);
  });
});

describe('--network none', () => {
  it('leaves each sandbox its loopback interface alone, where its daemon is', async () => {
    const networks = new ChosenNetworks({
      ...{ network: 'none', allowed_cidrs: [], is_fail_open: false },
      ...{ clock: systemClock, log: createLog('silent') },
    });
    const sandboxes = await Sandboxes.open('local', join(scratchFolder(), 'data'), [], {}, networks);
    expect(networks.state()).toEqual({ mode: 'none', reason: null, block_all: 'network_namespace' });
    await sandboxes.runtime.create(spec('sbx-1'));
    expect(await sandboxes.output('sbx-1', 'ls /proc/sys/net/ipv4/conf')).toBe('all\ndefault\nlo');
    expect(await sandboxes.output('sbx-1', 'getent hosts localhost sbx-1')).toContain('127.0.1.1');
    const health = 'curl -s -o /dev/null -w %{http_code} http://localhost:49983/healthz';
    expect(await sandboxes.output('sbx-1', health)).toBe('200');
    expect(await networks.usage('sbx-1')).toBeNull();
  });
});

describe.skipIf(problem !== null)(`--network auto${problem === null ? '' : ` (skipped: ${problem})`}`, () => {
  it('is metered where it can be', async () => {
    const networks = new ChosenNetworks({
      ...{ network: 'auto', allowed_cidrs: [], is_fail_open: false },
      ...{ clock: systemClock, log: createLog('silent') },
    });
    await networks.start(scratchFolder());
    const reason = 'the network meter is not running';
    expect(networks.state()).toEqual({ mode: 'metered', reason, block_all: 'network_namespace' });
  });
});
