import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BareServerVerbs, Keeping } from './bare-server.ts';
import type { ConsumerVerbs, Consuming } from './consumer.ts';
import { Daemon, SECRET } from './daemon.ts';
import { type Flood, wrkFlood } from './flood.ts';
import type { LoadVerbs } from './load.ts';
import { Program, type Verbs } from './program.ts';
import { nginxSink, type Sink } from './sink.ts';
import type { Row } from './table.ts';

/** A benchmark: reports its rows as they are known. */
export interface Benchmark {
  name: string;
  run: (bench: Bench) => Promise<void>;
}

/** What a benchmark is given: it starts things here, and all of them end with it, the last first. */
export class Bench {
  readonly report: (row: Row) => void;
  /** How often the daemon is killed. */
  readonly rounds: number;
  readonly #undo: (() => unknown)[] = [];

  constructor(report: (row: Row) => void, rounds: number) {
    this.report = report;
    this.rounds = rounds;
  }

  /** Runs at the end. */
  onEnd(undo: () => unknown): void {
    this.#undo.push(undo);
  }

  folder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'sandboxd-bench-'));
    this.#undo.push(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
  }

  async program<V extends Verbs>(url: URL, env?: NodeJS.ProcessEnv): Promise<Program<V>> {
    const program = await Program.start<V>(url, env);
    this.#undo.push(() => program.stop());
    return program;
  }

  load(): Promise<Program<LoadVerbs>> {
    return this.program<LoadVerbs>(new URL('./load.ts', import.meta.url));
  }

  /** Publishes as fast as they are answered. */
  async flood(): Promise<Flood> {
    const wrk = await wrkFlood(this.folder());
    if (wrk) return wrk;
    const load = await this.load();
    return (shape) => load.ask('publish', shape);
  }

  /** A consumer that listens, and where. */
  async consumer(consuming: Consuming): Promise<{ consumer: Program<ConsumerVerbs>; url: string }> {
    const consumer = await this.program<ConsumerVerbs>(new URL('./consumer.ts', import.meta.url));
    return { consumer, ...(await consumer.ask('listen', consuming)) };
  }

  /** A consumer that only counts, and listens. */
  async sink(): Promise<Sink> {
    const sink = (await nginxSink(this.folder())) ?? (await this.#nodeSink());
    this.#undo.push(() => sink.close());
    await sink.listen();
    return sink;
  }

  async #nodeSink(): Promise<Sink> {
    const { consumer, url } = await this.consumer({ port: 0 });
    await consumer.ask('close', null);
    return {
      url,
      listen: async () => void (await consumer.ask('listen', { port: Number(new URL(url).port) })),
      close: () => consumer.ask('close', null),
      counted: () => consumer.ask('count', null),
    };
  }

  /** The server that keeps nothing; returns its address. */
  async withoutStorage(): Promise<string> {
    return (await this.#bareServer({ how: 'nothing' })).url;
  }

  /** The server that makes and signs each event, and keeps nothing. */
  signingOnly(): Promise<{ url: string; pid: number }> {
    return this.#bareServer({ how: 'signed', secret: SECRET });
  }

  /** The server that sends each publish on, and keeps nothing. */
  forwardingOnly(webhook_url: string): Promise<{ url: string; pid: number }> {
    return this.#bareServer({ how: 'forwarded', webhook_url });
  }

  /** The server that commits each publish by itself; returns its address. */
  async rowPerCommit(env?: NodeJS.ProcessEnv): Promise<string> {
    return (await this.#bareServer({ how: 'row', path: join(this.folder(), 'events.db') }, env)).url;
  }

  async #bareServer(keeping: Keeping, env?: NodeJS.ProcessEnv): Promise<{ url: string; pid: number }> {
    const server = await this.program<BareServerVerbs>(new URL('./bare-server.ts', import.meta.url), env);
    const { url } = await server.ask('listen', keeping);
    return { url, pid: server.pid };
  }

  /** The daemon, in a folder of its own unless one is given. */
  async daemon(settings: {
    webhook_url: string;
    state_dir?: string;
    options?: string[];
    env?: NodeJS.ProcessEnv;
  }): Promise<Daemon> {
    const daemon = await Daemon.start({ state_dir: join(this.folder(), 'state'), ...settings });
    this.#undo.push(() => daemon.stop(process.env.BENCH_NODE_OPTIONS ? 'SIGTERM' : 'SIGKILL'));
    return daemon;
  }

  async end(): Promise<void> {
    for (const undo of this.#undo.splice(0).reverse()) await undo();
  }
}
