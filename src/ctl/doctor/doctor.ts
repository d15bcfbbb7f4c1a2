import type { Clock } from '../../base/clock.ts';
import type { DaemonClient } from '../../client/daemon-client.ts';
import { daemonAt } from '../api/clients.ts';
import type { Address, Token } from '../api/config.ts';
import type { Terminal } from '../context.ts';
import { EXIT, Failure } from '../failure.ts';
import { printable } from '../terminal/printable.ts';
import { type Finding, type Level, warning, worst } from './finding.ts';
import { checkClock, checkInotify, checkReaper } from './machine.ts';
import { checkPort } from './port.ts';
import { checkStorage } from './storage.ts';
import { checkDelivery, checkEndpoint, sendTest } from './webhook.ts';

/** What `sandboxctl doctor` checks. */
export interface DoctorTarget {
  address: Address;
  token: Token;
  state_dir: string;
  /** Null: the directory that the running daemon watches. */
  watch_dir: string | null;
  webhook_url: string | null;
  /** If empty, the test event is not signed. */
  webhook_secret: string;
}

const STYLES = { ok: 'green', warning: 'yellow', error: 'red' } as const satisfies Record<Level, string>;

/**
 * Checks everything that a sandbox requires of its image and machine and prints one line each. Returns the exit code: 0,
 * 1 or 2 by the worst finding. Contract section 4, "`sandboxctl`".
 */
export async function doctor({ out, json }: Terminal, target: DoctorTarget, clock: Clock): Promise<number> {
  const findings: Finding[] = [];
  const report = async (found: Finding[]) => {
    findings.push(...found);
    if (json) return;
    for (const { name, level, message } of found) {
      await out.line(`${out.style(STYLES[level], level.padEnd(8))} ${name.padEnd(16)} ${printable(message)}`);
    }
  };
  const { daemon } = daemonAt(target.address, target.token);
  await report(await checkPort(target.address));
  await report(await checkStorage(target.state_dir));
  const watcher = await watcherOf(daemon);
  await report(await checkInotify(target.watch_dir ?? watcher?.watch_dir ?? null));
  if (watcher?.degraded) await report([warning('watch', watcher.degraded)]);
  await report(await checkReaper(clock));
  await report(await checkClock(clock));
  await checkWebhook(target, daemon, clock, report);
  if (json) await out.line(JSON.stringify({ findings }));
  return worst(findings);
}

async function checkWebhook(
  { webhook_url, webhook_secret }: DoctorTarget,
  daemon: DaemonClient,
  clock: Clock,
  report: (found: Finding[]) => Promise<void>,
): Promise<void> {
  const url = webhook_url === null ? null : parseUrl(webhook_url);
  const reached = url ? await checkEndpoint(url) : [];
  await report(reached);
  const delivered = await checkDelivery(daemon);
  if (delivered) return report(delivered);
  if (!url)
    return report([
      warning('delivery', 'no daemon is running and --webhook-url is not set: no test event was sent'),
    ]);
  if (!reached.some(({ level }) => level === 'error'))
    await report(await sendTest(url, webhook_secret, clock));
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url && ['http:', 'https:'].includes(url.protocol)) return url;
  throw new Failure(EXIT.usage, `--webhook-url must be http://… or https://…, not '${text}'`);
}

/** What the running daemon watches, and why it may miss changes; null where there is nothing to say. */
async function watcherOf(
  daemon: DaemonClient,
): Promise<{ watch_dir: string; degraded: string | null } | null> {
  try {
    const { watcher } = await daemon.GET('/api/v1/sandbox');
    if (typeof watcher?.watch_dir !== 'string') return null;
    const { watch_dir, degraded } = watcher;
    return { watch_dir, degraded: typeof degraded === 'string' ? degraded : null };
  } catch {
    return null; // no daemon is running, or it does not say
  }
}
