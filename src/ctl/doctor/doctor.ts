import type { Clock } from '../../base/clock.ts';
import { Client } from '../api/client.ts';
import type { DaemonAddress, Token } from '../api/config.ts';
import type { Terminal } from '../context.ts';
import { EXIT, Failure } from '../failure.ts';
import { printable } from '../terminal/printable.ts';
import { type Finding, type Level, warning, worst } from './finding.ts';
import { checkClock, checkInotify, checkReaper } from './machine.ts';
import { checkPort } from './port.ts';
import { checkStorage } from './storage.ts';
import { checkDelivery, checkEndpoint, sendTest } from './webhook.ts';

/** What is looked at. */
export interface DoctorTarget {
  address: DaemonAddress;
  token: Token;
  state_dir: string;
  /** Null for what the daemon that runs watches. */
  watch_dir: string | null;
  webhook_url: string | null;
  /** Empty signs nothing. */
  webhook_secret: string;
}

const STYLES = { ok: 'green', warning: 'yellow', error: 'red' } as const satisfies Record<Level, string>;

/**
 * Looks at everything that a sandbox's image and machine have to provide, one line each, and returns 0, 1 or 2 by the
 * worst of it. Source: contract section 4.
 */
export async function doctor({ out, json }: Terminal, patient: DoctorTarget, clock: Clock): Promise<number> {
  const findings: Finding[] = [];
  const take = async (found: Finding[]) => {
    findings.push(...found);
    if (json) return;
    for (const { name, level, message } of found) {
      await out.line(`${out.style(STYLES[level], level.padEnd(8))} ${name.padEnd(16)} ${printable(message)}`);
    }
  };
  const client = new Client(patient.address, patient.token);
  await take(await checkPort(patient.address));
  await take(await checkStorage(patient.state_dir));
  await take(await checkInotify(patient.watch_dir ?? (await watched(client))));
  await take(await checkReaper(clock));
  await take(await checkClock(clock));
  await checkWebhook(patient, client, clock, take);
  if (json) await out.line(JSON.stringify({ findings }));
  return worst(findings);
}

async function checkWebhook(
  { webhook_url, webhook_secret }: DoctorTarget,
  client: Client,
  clock: Clock,
  take: (found: Finding[]) => Promise<void>,
): Promise<void> {
  const url = webhook_url === null ? null : parseUrl(webhook_url);
  const reached = url ? await checkEndpoint(url) : [];
  await take(reached);
  const delivered = await checkDelivery(client);
  if (delivered) return take(delivered);
  if (!url)
    return take([warning('delivery', 'no daemon runs and no --webhook-url is given: nothing was delivered')]);
  if (!reached.some(({ level }) => level === 'error')) await take(await sendTest(url, webhook_secret, clock));
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url && ['http:', 'https:'].includes(url.protocol)) return url;
  throw new Failure(EXIT.usage, `--webhook-url must be http://… or https://…, not '${text}'`);
}

async function watched(client: Client): Promise<string | null> {
  try {
    const { watcher } = await client.call<{ watcher: { watch_dir: string } | null }>('GET', '/sandbox');
    return typeof watcher?.watch_dir === 'string' ? watcher.watch_dir : null;
  } catch {
    return null; // no daemon runs, or not one that tells us
  }
}
