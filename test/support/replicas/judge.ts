import type { Story } from './actor.ts';
import { type Lane, SECRET, TEAM } from './lane.ts';
import { stateOf, tracedIds, tracesIn } from './machine.ts';
import type { Tracked } from './tracked.ts';

/** A row of `sandboxes`, as far as it is judged. */
interface Row {
  sandbox_id: string;
  status: string;
  operation: string | null;
  deleted_at_ms: string | null;
}

/** How much later than the answer, or earlier than the question, a change may be committed, in ms: clocks are read at different moments. */
const SLACK_MS = 60;

/** What there is of every sandbox that runs or is paused. */
const UNSAFE_TRACES = ['directories', 'processes', 'groups'] as const;
const ALL_TRACES = [...UNSAFE_TRACES, 'mounts'] as const;

const LIVE = 'select sandbox_id, status, operation from sandboxes where deleted_at_ms is null';

/** Sandboxes with an operation under way, apart from deletions, which may wait for what is nowhere. */
export async function underWay(lane: Lane): Promise<string[]> {
  const rows = await lane.query<Row>(`${LIVE} and operation != 'cleaning'`);
  return rows.map(({ sandbox_id, operation }) => `${sandbox_id}: ${operation} has not ended`);
}

/** What is recorded and is not what runs; empty where both are the same, and the same as was acknowledged. */
export async function differences(lane: Lane, story: Story): Promise<string[]> {
  const rows = await lane.query<Row>(LIVE);
  const busy = rows.filter(({ operation }) => operation !== null);
  if (busy.length > 0)
    return busy.map(({ sandbox_id, operation }) => `${sandbox_id}: ${operation} has not ended`);
  const ids = new Set(rows.map(({ sandbox_id }) => sandbox_id));
  const known = new Set([...ids, ...story.sandboxes.map(({ id }) => id)]);
  const traces = tracesIn(lane.data_dir, known);
  const problems = [...tracedIds(traces)]
    .filter((id) => !ids.has(id))
    .map((id) => `${id}: is not recorded and has left ${kindsOf(traces, id).join(', ')}`);
  // The deletion of one that was put back has ended its daemon: it is failed, as it must be.
  const deleted = new Set(
    story.sandboxes.filter((each) => each.is_put_back && each.told === 'gone').map(({ id }) => id),
  );
  const judged = rows.filter((row) => row.status !== 'failed' || !deleted.has(row.sandbox_id));
  for (const row of judged) problems.push(...(await differencesOf(lane, row, traces)));
  for (const sandbox of story.sandboxes) {
    const row = rows.find(({ sandbox_id }) => sandbox_id === sandbox.id);
    problems.push(...brokenPromises(sandbox, row));
  }
  return [...problems, ...(await quotaProblems(lane, rows))];
}

async function differencesOf(lane: Lane, row: Row, traces: ReturnType<typeof tracesIn>): Promise<string[]> {
  const { sandbox_id, status } = row;
  if (status !== 'running' && status !== 'paused') return [`${sandbox_id}: is ${status}`];
  const kinds = lane.runtime === 'local' ? ALL_TRACES : UNSAFE_TRACES;
  const missing = kinds.filter((kind) => !traces[kind].has(sandbox_id));
  if (missing.length > 0) return [`${sandbox_id}: is ${status} and has no ${missing.join(', ')}`];
  const state = await stateOf(lane.data_dir, sandbox_id);
  return state === status ? [] : [`${sandbox_id}: is recorded as ${status} and is ${state}`];
}

function kindsOf(traces: ReturnType<typeof tracesIn>, id: string): string[] {
  return Object.entries(traces).flatMap(([kind, ids]) => (ids.has(id) ? [kind] : []));
}

function brokenPromises({ id, told, has_ttl, is_put_back }: Tracked, row: Row | undefined): string[] {
  if (has_ttl || is_put_back || told === 'unknown') return [];
  const is = row?.status ?? 'gone';
  return is === told ? [] : [`${id}: was acknowledged as ${told} and is ${is}`];
}

async function quotaProblems(lane: Lane, rows: Row[]): Promise<string[]> {
  const running = rows.filter(({ status }) => status === 'running' || status === 'starting').length;
  const answers = await Promise.all(
    lane.replicas.map((replica) => replica.ask('GET', '/quotas/active_sandboxes')),
  );
  return answers.flatMap((answer) => {
    const current = answer?.data?.current;
    return current === running ? [] : [`the quota counts ${current} where ${running} run`];
  });
}

/** What is left of sandboxes that were all deleted. */
export async function leftovers(lane: Lane, story: Story): Promise<string[]> {
  const rows = await lane.query<Row>(LIVE);
  if (rows.length > 0) {
    return rows.map(
      ({ sandbox_id, status, operation }) => `${sandbox_id}: is still ${status} (${operation})`,
    );
  }
  const traces = tracesIn(
    lane.data_dir,
    story.sandboxes.map(({ id }) => id),
  );
  return [...tracedIds(traces)].map((id) => `${id}: has left ${kindsOf(traces, id).join(', ')}`);
}

/** What the consumer should have got and has not, or should not have got. `deleted`: ids that were there and are deleted. */
export function deliveryProblems(lane: Lane, story: Story, deleted: ReadonlySet<string>): string[] {
  const forgotten = new Set(story.sandboxes.filter((each) => each.is_forgotten).map(({ id }) => id));
  const { consumer } = lane;
  const bodies = new Map<string, string>();
  const problems = new Set<string>();
  const by_sandbox = Map.groupBy(consumer.deliveries, ({ event }) => (event as unknown as Row).sandbox_id);
  for (const { event, body } of consumer.deliveries) {
    if ((bodies.get(event.event_id) ?? body) !== body) problems.add(`${event.event_id}: has two bodies`);
    bodies.set(event.event_id, body);
  }
  if (consumer.unsigned(SECRET).length > 0) problems.add('deliveries are not signed');
  for (const sandbox of story.sandboxes) {
    const lost = [...sandbox.acknowledged].filter(
      ([event_id, payload]) => !bodies.get(event_id)?.includes(JSON.stringify(payload)),
    );
    if (lost.length > 0) problems.add(`${sandbox.id}: ${lost.length} acknowledged events are lost`);
  }
  const put_back = new Set(story.sandboxes.filter((each) => each.is_put_back).map(({ id }) => id));
  for (const id of deleted) {
    if (forgotten.has(id)) continue;
    const events = (by_sandbox.get(id) ?? []).map(({ event }) => event);
    const ends = new Set(events.filter(({ event_type }) => event_type === 'sandbox.deleted').map(idOf));
    const is_right = put_back.has(id) ? ends.size >= 1 : ends.size === 1;
    if (!is_right) problems.add(`${id}: has ${ends.size} sandbox.deleted`);
    const sequences = new Set(events.flatMap(({ sequence }) => sequence ?? []));
    const last = Math.max(0, ...sequences);
    if (sequences.size !== last && !put_back.has(id)) {
      const gaps = Array.from({ length: last }, (_, i) => i + 1).filter((n) => !sequences.has(n));
      problems.add(`${id}: the sequences ${gaps.join(', ')} of ${last} are missing`);
    }
  }
  return [...problems];
}

function idOf({ event_id }: { event_id: string }): string {
  return event_id;
}

interface Window {
  sandbox_id: string;
  window_start_ms: string;
  window_end_ms: string;
  value: string;
}

/** Where the windows of running time are not what ran: overlaps, more gaps than pauses, too much or too little. */
export async function windowProblems(lane: Lane, story: Story): Promise<string[]> {
  const rows = await lane.query<Window>(
    `select sandbox_id, window_start_ms, window_end_ms, value from usage_windows
     where team_id = $1 and window_type = 'sandbox.runtime_mib_milliseconds' order by window_start_ms, seq`,
    [TEAM],
  );
  return story.sandboxes.flatMap((sandbox) => {
    const windows = rows
      .filter(({ sandbox_id }) => sandbox_id === sandbox.id)
      .map((row) => ({
        start_ms: Number(row.window_start_ms),
        end_ms: Number(row.window_end_ms),
        value: Number(row.value),
      }));
    return windowProblemsOf(sandbox, windows).map((problem) => `${sandbox.id}: ${problem}`);
  });
}

function windowProblemsOf(
  { pauses, has_ttl, is_put_back, certain_ms, possible_ms }: Tracked,
  windows: { start_ms: number; end_ms: number; value: number }[],
): string[] {
  const problems: string[] = [];
  let gaps = 0;
  for (const [i, { start_ms, end_ms, value }] of windows.entries()) {
    const before_ms = windows[i - 1]?.end_ms ?? start_ms;
    if (start_ms < before_ms) problems.push('its windows overlap');
    if (start_ms > before_ms) gaps += 1;
    const memory_mib = value / (end_ms - start_ms);
    if (memory_mib !== 128 && memory_mib !== 192) problems.push(`a window has ${memory_mib} MiB`);
  }
  if (is_put_back) return problems;
  if (gaps > pauses) problems.push(`${gaps} gaps between its windows, and ${pauses} pauses`);
  const sum_ms = windows.reduce((sum, { start_ms, end_ms }) => sum + end_ms - start_ms, 0);
  if (sum_ms + SLACK_MS < certain_ms)
    problems.push(`${sum_ms} ms in windows, and it ran ${Math.round(certain_ms)}`);
  if (!has_ttl && sum_ms - SLACK_MS > possible_ms) {
    problems.push(`${sum_ms} ms in windows, and it ran at most ${Math.round(possible_ms)}`);
  }
  return problems;
}
