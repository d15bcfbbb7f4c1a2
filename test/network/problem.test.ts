import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { networkProblem } from '../../src/network/problem.ts';
import { IS_ROOT } from '../support/rights.ts';
import { runSync } from '../support/run-sync.ts';

const why = IS_ROOT ? '' : ' (skipped: root is required)';

describe.skipIf(!IS_ROOT)(`a machine on which the network is tried${why}`, () => {
  it('is left without a trace, also of a process that was killed while it tried', async () => {
    const killed = 'sbx-probe-4194305-1';
    runSync('ip', 'netns', 'add', killed);
    await networkProblem();
    const own = new RegExp(`sbx-probe-(${process.pid}|4194305)-`);
    expect(runSync('ip', 'netns')).not.toMatch(own);
  });

  it('says which right is missing', async () => {
    const source = join(import.meta.dirname, '../../src/network/problem.ts');
    const program = `import { networkProblem } from '${source}'; console.log(await networkProblem());`;
    const drop = ['--bounding-set', '-net_admin', '--inh-caps', '-net_admin'];
    const args = [...drop, process.execPath, '--input-type=module', '-e', program];
    const { stdout } = await promisify(execFile)('setpriv', args);
    expect(stdout).toMatch(/^it needs root, or CAP_NET_ADMIN and CAP_SYS_ADMIN \(CAP_NET_ADMIN is missing;/);
  });
});
