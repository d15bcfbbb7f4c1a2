import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { missingPrograms } from '../../support/run-sync.ts';
import type { LoadResult } from './load.ts';
import { payloadOf } from './payload.ts';

const PATH = '/api/v1/webhook/publish';
const UNIT_MS: Record<string, number> = { us: 0.001, ms: 1, s: 1000 };

export interface FloodShape {
  url: string;
  connections: number;
  duration_ms: number;
}

export type FloodResult = Omit<LoadResult, 'next' | 'kept'>;

/** Publishes over kept connections, each sending again as soon as it is answered. */
export type Flood = (shape: FloodShape) => Promise<FloodResult>;

/**
 * wrk(1) of Debian's packages, or null where it is not installed. A generator in Node takes as much CPU as the server
 * that it measures: on two cores it would measure itself.
 */
export async function wrkFlood(folder: string): Promise<Flood | null> {
  if (missingPrograms(['wrk']).length > 0) return null;
  const script = join(folder, 'publish.lua');
  const body = `{"payload":${payloadOf(1)}}`;
  writeFileSync(
    script,
    `wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = [[${body}]]\n`,
  );
  return async ({ url, connections, duration_ms }) => {
    const seconds = Math.ceil(duration_ms / 1000);
    const options = [
      '-t1',
      '--timeout',
      '30s',
      `-c${connections}`,
      `-d${seconds}s`,
      '--latency',
      '-s',
      script,
    ];
    const { stdout } = await execa('wrk', [...options, url + PATH]);
    return figuresIn(stdout);
  };
}

function figuresIn(report: string): FloodResult {
  const number = (pattern: RegExp) => Number(pattern.exec(report)?.[1] ?? Number.NaN);
  const time = (share: string) => {
    const [, value, unit = ''] = new RegExp(`${share}%\\s+([\\d.]+)(us|ms|s)`).exec(report) ?? [];
    return Number(value) * (UNIT_MS[unit] ?? Number.NaN);
  };
  const errors = /Socket errors: .*/.exec(report)?.[0];
  if (errors) throw new Error(`wrk: ${errors}`);
  const refused = /Non-2xx/.test(report) ? number(/Non-2xx or 3xx responses: (\d+)/) : 0;
  return {
    acknowledged: number(/(\d+) requests in/) - refused,
    refused,
    per_second: number(/Requests\/sec:\s+([\d.]+)/),
    p50_ms: time('50'),
    p99_ms: time('99'),
  };
}
