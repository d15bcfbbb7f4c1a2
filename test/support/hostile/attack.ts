import { Program } from '../../bench/support/program.ts';
import type { Attacked, AttackerVerbs } from './attacker.ts';
import type { HonestReport, HonestVerbs } from './honest.ts';
import type { ReceivedEvent, ReceiverVerbs } from './receiver.ts';
import { type HighestFigures, Samples } from './samples.ts';

/** Programs around a daemon: hostile clients, honest ones, and a receiver. */
export interface Parties {
  attacker: Program<AttackerVerbs>;
  honest: Program<HonestVerbs>;
  receiver: Program<ReceiverVerbs>;
}

/** A daemon that may be attacked. */
export interface Target {
  pid: number;
  url: string;
  token: string;
}

export interface AttackSettings {
  clients: number;
  duration_ms: number;
  seed: number;
  /** A folder for file operations. */
  folder: string;
  only?: string;
  /** A server that has nothing but publishes and health. */
  is_bare?: boolean;
}

export interface AttackOutcome {
  attacked: Attacked;
  honest: HonestReport;
  highest: HighestFigures;
  /** The highest value of each gauge of `/metrics`, by its name and labels. */
  gauges: Record<string, number>;
}

/** Starts the programs; stop each of them. */
export async function parties(): Promise<Parties> {
  const [attacker, honest, receiver] = await Promise.all([
    Program.start<AttackerVerbs>(new URL('./attacker.ts', import.meta.url)),
    Program.start<HonestVerbs>(new URL('./honest.ts', import.meta.url)),
    Program.start<ReceiverVerbs>(new URL('./receiver.ts', import.meta.url)),
  ]);
  return { attacker, honest, receiver };
}

/** Runs the attack beside honest clients, and looks at the daemon all the while. */
export async function attack(
  { attacker, honest }: Parties,
  { pid, url, token }: Target,
  { clients, duration_ms, seed, folder, only = '', is_bare = false }: AttackSettings,
): Promise<AttackOutcome> {
  const samples = new Samples(pid);
  const gauges: Record<string, number> = {};
  const over = new AbortController();
  const watched = watchGauges(url, gauges, over.signal);
  const site = { port: Number(new URL(url).port), token, folder };
  const [attacked, honest_report] = await Promise.all([
    attacker.ask('attack', { site, clients, duration_ms, seed, only }),
    honest.ask('run', { url, token, duration_ms, is_bare }),
  ]);
  over.abort();
  await watched;
  return { attacked, honest: honest_report, highest: await samples.stop(), gauges };
}

/** Once a second, as a scraper does. */
async function watchGauges(url: string, gauges: Record<string, number>, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    const text = await metrics(url, over);
    for (const [, name = '', value] of text.matchAll(/^(sandboxd_\w+(?:\{[^}]*\})?) ([\d.e+-]+)$/gm))
      if (!/_(bucket|sum|count|total)\b/.test(name))
        gauges[name] = Math.max(gauges[name] ?? 0, Number(value));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

async function metrics(url: string, signal: AbortSignal): Promise<string> {
  try {
    return await (await fetch(`${url}/metrics`, { signal })).text();
  } catch {
    return ''; // the honest clients tell of it
  }
}

/** Acknowledged events that did not arrive, or not as they were published: one line each. */
export function lostOf({ attacked, honest }: AttackOutcome, received: ReceivedEvent[]): string[] {
  const arrived = new Map(received.map((event) => [event.event_id, event]));
  const acknowledged = [
    ...attacked.acknowledged,
    ...honest.published.map(({ event_id, checksum }) => [event_id, checksum] as const),
  ];
  return acknowledged.flatMap(([event_id, checksum]) => {
    const event = arrived.get(event_id);
    if (event === undefined) return [`${event_id} was not delivered`];
    if (event.checksum !== checksum) return [`${event_id} has another payload`];
    return event.is_whole ? [] : [`${event_id} has a wrong signature, or changed between two attempts`];
  });
}
