import { readFileSync } from 'node:fs';
import { StartError } from '../contract/errors.ts';
import { sizeText } from '../contract/limits.ts';
import type { NodeHeld, NodeView } from '../contract/node.ts';
import type { ManagerConfig } from './config/config.ts';

/** How long a manager may take to answer, in ms: one that is asked at night may be slow. */
const ANSWER_MS = 10_000;
/** Addresses that are listened on and cannot be called, with what can. */
const CALLABLE: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
/** Teams that are shown. */
const TEAMS = 20;

/** What `sandbox-manager status` shows. */
export interface ManagerStatus {
  url: string;
  is_ready: boolean;
  /** Why it is not ready, or null. */
  reason: string | null;
  /** The fields of `/readyz`; null where it is not ready. */
  readiness: Record<string, unknown> | null;
  /** Null without a token, or where the manager cannot say it. */
  node: NodeView | null;
}

/**
 * Asks the manager that listens where the configuration says how it is, and with an admin token of `token_file` or `token`
 * also what of its node is taken. Throws StartError if it does not answer, or refuses the token.
 */
export async function managerStatus(
  { host, port }: Pick<ManagerConfig, 'host' | 'port'>,
  given: { token_file?: string | undefined; token?: string | undefined },
): Promise<ManagerStatus> {
  const address = CALLABLE[host] ?? host;
  const url = `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
  const token = given.token_file === undefined ? given.token : tokenIn(given.token_file);
  const ready = await ask(url, '/readyz');
  const status = { url, is_ready: ready.status === 200, reason: ready.reason, readiness: ready.data };
  if (token === undefined) return { ...status, node: null };
  const node = await ask(url, `/api/v1/node?limit=${TEAMS}`, token);
  if (node.status === 401 || node.status === 403) throw new StartError(`the token: ${node.reason}`, 1);
  return { ...status, reason: status.reason ?? node.reason, node: node.data as NodeView | null };
}

function tokenIn(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new StartError(`--token-file ${path} cannot be read: ${(error as Error).message}`, 2, error);
  }
}

interface Asked {
  status: number;
  data: Record<string, unknown> | null;
  reason: string | null;
}

/** What both routes answer. */
interface Envelope {
  data?: Record<string, unknown>;
  error?: { message: string };
}

async function ask(url: string, path: string, token?: string): Promise<Asked> {
  try {
    const answer = await fetch(url + path, {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const { data = null, error } = (await answer.json()) as Envelope;
    return { status: answer.status, data, reason: error?.message ?? null };
  } catch (error) {
    const { cause, message } = error as Error;
    const why = cause instanceof Error ? cause.message : message;
    throw new StartError(`no manager answers at ${url}: ${why}`, 1, error);
  }
}

/** The status as lines for people. */
export function statusText({ url, is_ready, reason, readiness, node }: ManagerStatus): string {
  const degraded = (readiness?.degraded ?? []) as string[];
  const lines = [
    `${url}  ${is_ready ? 'ready' : 'not ready'}${reason === null ? '' : `: ${reason}`}`,
    ...degraded.map((each) => `  degraded: ${each}`),
  ];
  if (node !== null) return [...lines, ...nodeLines(node), ''].join('\n');
  const how = 'sandbox-manager token create --team ID --scope admin';
  const hint = `  what is taken of the node: with --token-file and a token of scope admin (${how})`;
  return [...lines, ...(reason === null ? [hint] : []), ''].join('\n');
}

function nodeLines({ budget, use, unrecorded, share, team_share, teams, has_more }: NodeView): string[] {
  const row = (name: string, taken: string, of: string | null, a_team = '') =>
    `  ${name.padEnd(26)}${taken.padStart(10)}  of ${(of ?? 'no budget').padEnd(10)}${a_team}`.trimEnd();
  const shared = (mib: number | null) =>
    mib === null || team_share === 100 ? '' : `  a team's share: ${sizeText(mib)} (${team_share} %)`;
  const size = (mib: number | null) => (mib === null ? null : sizeText(mib));
  const count = (number: number | null) => (number === null ? null : String(number));
  const cores = (millis: number | null) => (millis === null ? null : coresText(millis));
  return [
    row('memory', sizeText(use.memory_mib), size(budget.memory_mib)),
    row('cores', coresText(use.cpu_millis), cores(budget.cpu_millis)),
    row('running sandboxes', String(use.sandboxes), count(budget.sandboxes)),
    row('disk', sizeText(use.disk_mib), size(budget.disk_mib), shared(share.disk_mib)),
    row(
      `of the memory, ${use.paused} paused`,
      sizeText(use.paused_memory_mib),
      size(budget.memory_mib),
      shared(share.paused_memory_mib),
    ),
    ...(unrecorded.disk_mib + unrecorded.sandboxes + unrecorded.paused === 0
      ? []
      : [`  of which not recorded: ${heldText(unrecorded)}`]),
    ...teams.map((each) => `${each.team_id}  ${heldText(each)}`),
    ...(has_more ? ['and more teams: GET /api/v1/node'] : []),
  ];
}

function heldText({
  disk_mib,
  sandboxes,
  memory_mib,
  cpu_millis,
  paused,
  paused_memory_mib,
}: NodeHeld): string {
  return [
    `disk ${sizeText(disk_mib)}`,
    `${sandboxes} running with ${sizeText(memory_mib - paused_memory_mib)} and ${coresText(cpu_millis)} cores`,
    `${paused} paused with ${sizeText(paused_memory_mib)}`,
  ].join(', ');
}

function coresText(millis: number): string {
  return String(millis / 1000);
}
