import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { outputOf, start } from '../../support/process/harness.ts';
import { CAN_MOUNT, unlessMounts } from '../../support/rights.ts';
import { scratchFolder } from '../../support/scratch.ts';

const MIB = 1024 * 1024;

test.skipIf(!CAN_MOUNT)(
  `on a full disk a process goes on, the log says how much of its output was lost, and later output is kept${unlessMounts}`,
  async () => {
    const disk = join(scratchFolder(), 'disk');
    mkdirSync(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk]);
    try {
      const lines: { msg: string; lost_bytes?: number }[] = [];
      const log = pino({ level: 'warn' }, { write: (line) => lines.push(JSON.parse(line)) });
      const { supervisor } = await start({ directory: join(disk, 'processes'), log });
      await supervisor.spawn({
        shell: `head -c ${6 * MIB} /dev/zero; read go; echo later`,
        process_id: 'p',
        stdin: 'pipe',
      });
      const end = { for: 'exit', timeout_ms: 1_000 } as const;
      expect(await supervisor.wait('p', end)).toBeNull(); // all was taken by then, and it reads its stdin
      execFileSync('mount', ['-o', 'remount,size=64m', disk]);
      await supervisor.writeStdin('p', { data: [Buffer.from('go\n')] });
      expect(await supervisor.finished('p')).toMatchObject({ exit_code: 0 });
      expect((await outputOf(supervisor, 'p')).stdout.endsWith('later\n')).toBe(true);
      const told = lines.filter(({ msg }) => msg.startsWith('output of a process was lost'));
      expect(told).toHaveLength(1);
      expect(told[0]?.lost_bytes).toBeGreaterThan(3 * MIB);
      await supervisor.stop();
    } finally {
      execFileSync('umount', ['-l', disk]);
    }
  },
);
