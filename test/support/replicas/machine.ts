import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hierarchyOf, unifiedMountPoint } from '../../../src/base/linux/cgroup.ts';
import { isZombie, readStatNow } from '../../../src/base/linux/procfs.ts';
import { requestDaemon } from '../../../src/runtime/control-client.ts';
import { CONTROLLERS } from '../../../src/runtime/limits/resource-groups.ts';
import { markOf, SANDBOX_MARK_VARIABLE } from '../../../src/runtime/local/host-process.ts';
import { succeeds } from '../run-sync.ts';

const GROUPS = 'sandbox-manager';
const ANSWER_MS = 20_000;

/** What there is of sandboxes on this machine, whatever anybody has recorded: the ids of each kind of trace. */
export interface Traces {
  directories: Set<string>;
  mounts: Set<string>;
  processes: Map<string, number[]>;
  groups: Set<string>;
  namespaces: Set<string>;
}

/** The traces of sandboxes in a data directory. `known`: ids whose processes are looked for beside those that have a directory. */
export function tracesIn(data_dir: string, known: Iterable<string>): Traces {
  const directories = new Set(readdirSync(data_dir).filter((name) => name.startsWith('sbx_')));
  const ids = new Set([...directories, ...known]);
  return {
    directories,
    mounts: new Set(mountsBelow(data_dir)),
    processes: processesOf(data_dir, ids),
    groups: new Set([...ids].filter(hasGroup)),
    namespaces: new Set(namesIn('/run/netns').flatMap((name) => [...ids].filter((id) => name.includes(id)))),
  };
}

/** Every id that has a trace. */
export function tracedIds(traces: Traces): Set<string> {
  return new Set(Object.values(traces).flatMap((ids: Set<string> | Map<string, unknown>) => [...ids.keys()]));
}

function mountsBelow(data_dir: string): string[] {
  const points = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  return points
    .filter((point) => point.startsWith(`${data_dir}/sbx_`))
    .map((point) => point.slice(data_dir.length + 1).split('/')[0] as string);
}

function processesOf(data_dir: string, ids: Set<string>): Map<string, number[]> {
  const marks = new Map([...ids].map((id) => [`${SANDBOX_MARK_VARIABLE}=${markOf(join(data_dir, id))}`, id]));
  const found = new Map<string, number[]>();
  for (const pid of namesIn('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const mark = environmentOf(pid).find((variable) => marks.has(variable));
    const stat = mark === undefined ? null : readStatNow(Number(pid));
    if (!stat || isZombie(stat)) continue;
    const id = marks.get(mark as string) as string;
    found.set(id, [...(found.get(id) ?? []), Number(pid)]);
  }
  return found;
}

/** Takes away what a round that failed has left. */
export function removeTraces(data_dir: string, traces: Traces): void {
  for (const pid of [...traces.processes.values()].flat()) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has just ended.
    }
  }
  for (const id of traces.mounts) succeeds('umount', '--lazy', join(data_dir, id, 'disk'));
}

function environmentOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
  } catch {
    return [];
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

const mounts = [...CONTROLLERS.map((controller) => hierarchyOf(controller)?.mount), unifiedMountPoint()];
const folders = [...new Set(mounts.flatMap((mount) => mount ?? []))].map((mount) => join(mount, GROUPS));

function hasGroup(sandbox_id: string): boolean {
  return folders.some((folder) => existsSync(join(folder, sandbox_id)));
}

function socketOf(data_dir: string, sandbox_id: string): string {
  const disk = join(data_dir, sandbox_id, 'disk');
  return join(existsSync(disk) ? disk : join(data_dir, sandbox_id), 'control.sock');
}

/** What a sandbox's daemon says it is: `running`, `paused`, or why it says nothing. */
export async function stateOf(data_dir: string, sandbox_id: string): Promise<string> {
  const request = { method: 'GET', path: '/sandbox', within_ms: ANSWER_MS };
  const answer = await requestDaemon(socketOf(data_dir, sandbox_id), request);
  if (answer.outcome === 'unreachable') return answer.reason;
  return (answer.data as { state?: string } | undefined)?.state ?? String(answer.status);
}

/** Publishes as what runs in a sandbox does; the event's id where it was acknowledged, else null. */
export async function publishIn(
  data_dir: string,
  sandbox_id: string,
  payload: object,
): Promise<string | null> {
  const body = { payload };
  const request = { method: 'POST', path: '/webhook/publish', body, within_ms: ANSWER_MS };
  const answer = await requestDaemon(socketOf(data_dir, sandbox_id), request);
  if (answer.outcome === 'unreachable' || answer.status !== 202) return null;
  return (answer.data as { event_id: string }).event_id;
}
