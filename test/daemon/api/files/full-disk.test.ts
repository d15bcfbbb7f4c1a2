import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Answer, LocalDaemon } from '../../../support/daemon/local-daemon.ts';
import { IS_ROOT } from '../../../support/rights.ts';
import { scratchFolder } from '../../../support/scratch.ts';

const codeOf = ({ status, error }: Answer) => [status, error?.code];

describe.runIf(IS_ROOT)('a full disk', () => {
  it('refuses copies, archives and directories with 507, and nothing is left of them', async () => {
    const daemon = await LocalDaemon.start();
    const folder = scratchFolder();
    const two = (verb: string, body: object) => daemon.ask(`/files/${verb}`, { json: body });
    const ask = (method: string, route: string, path: string, more = '', asked = {}) =>
      daemon.ask(`/files${route}?path=${encodeURIComponent(path)}${more}`, { method, ...asked });
    const disk = join(folder, 'disk');
    mkdirSync(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,nr_inodes=12', 'tmpfs', disk]);
    try {
      mkdirSync(join(folder, 'tree'));
      writeFileSync(join(folder, 'tree/large'), Buffer.alloc(3_000_000, 'x'));
      writeFileSync(join(disk, 'old'), 'whole');
      const full = [507, 'no_space'];
      const copy = { source: join(folder, 'tree'), destination: join(disk, 'tree') };
      expect(codeOf(await two('copy', copy))).toEqual(full);
      expect(codeOf(await two('move', copy))).toEqual(full);
      expect(
        codeOf(
          await two('copy', {
            source: join(folder, 'tree/large'),
            destination: join(disk, 'old'),
            overwrite: true,
          }),
        ),
      ).toEqual(full);
      const body = execFileSync('tar', ['-c', '-C', join(folder, 'tree'), 'large'], {
        maxBuffer: 10_000_000,
      });
      expect(codeOf(await ask('PUT', '/archive', disk, '', { body }))).toEqual(full);
      expect([readdirSync(disk), readFileSync(join(disk, 'old'), 'utf8')]).toEqual([['old'], 'whole']);
      expect(existsSync(join(folder, 'tree/large'))).toBe(true);
      const made = [];
      for (let i = 0; i < 12; i++)
        made.push(codeOf(await ask('POST', '', join(disk, `d${i}`), '&mkdir=true')));
      expect(made.at(-1)).toEqual(full);
      expect(codeOf(await ask('PUT', '', join(disk, 'old'), '', { body: 'new' }))).toEqual(full);
      expect(readFileSync(join(disk, 'old'), 'utf8')).toBe('whole');
    } finally {
      execFileSync('umount', [disk]);
    }
  });
});
