import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ENDED_PROCESSES_MAX_BYTES } from '../../src/contract/defaults.ts';
import { type SandboxdProgram, startSandboxd } from '../support/sandboxd-program.ts';
import { longSized } from './support/size.ts';

const STARTS = 1_000;
const MEMORY_MAX_MB = 200;

function rssMb({ pid }: SandboxdProgram): number {
  const [, kb = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kb) / 1024);
}

it('a thousand ended processes with environments of a MiB take little memory, also in the next daemon', async () => {
  const env = Object.fromEntries(Array.from({ length: 4_000 }, (_, index) => [`A${index}`, 'x'.repeat(240)]));
  const first = await startSandboxd([]);
  let most_mb = 0;
  for (let index = 0; index < longSized(STARTS); index++) {
    const body = { command: ['true'], env, process_id: `p${index}` };
    const { status } = await first.call('POST', '/api/v1/processes?wait_ms=60000', body);
    expect(status).toBe(201);
    most_mb = Math.max(most_mb, rssMb(first));
  }
  const kept = (await first.call('GET', '/api/v1/processes')).data.processes.length;
  const { state_dir } = first;
  await first.end('SIGKILL');
  const second = await startSandboxd([], { state_dir });
  const ready_mb = rssMb(second);
  const listed = (await second.call('GET', '/api/v1/processes')).data.processes.length;
  const listed_mb = rssMb(second);
  const on_disk = readdirSync(join(state_dir, 'processes')).length;
  console.log({ most_mb, ready_mb, listed_mb, kept, listed, on_disk });
  expect(Math.max(most_mb, ready_mb, listed_mb)).toBeLessThan(MEMORY_MAX_MB);
  const bytes = JSON.stringify({ env }).length;
  // The oldest may have been about to be removed, but none that there is room for.
  expect(listed).toBeLessThanOrEqual(kept);
  expect(listed).toBeGreaterThan(Math.min(longSized(STARTS), ENDED_PROCESSES_MAX_BYTES / bytes) - 2);
  expect(on_disk * bytes).toBeLessThan(1.1 * ENDED_PROCESSES_MAX_BYTES);
  const again = { command: ['true'], env, process_id: `p${longSized(STARTS) - 1}` };
  expect((await second.call('POST', '/api/v1/processes', again)).status).toBe(200);
}, 3_600_000);
