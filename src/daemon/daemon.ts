import { join } from 'node:path';
import type { Writable } from 'node:stream';
import type { Clock } from '../base/clock.ts';
import type { HttpApp } from '../base/http/app.ts';
import type { Log } from '../base/log.ts';
import { ServiceGroup } from '../base/service.ts';
import { ApiError } from '../contract/errors.ts';
import type { SandboxState } from '../contract/sandbox.ts';
import { ApiContext } from './api/api-context.ts';
import type { DaemonConfig } from './config.ts';
import { DaemonCore, type Initialisation } from './core.ts';
import { DaemonState } from './daemon-state.ts';
import { Environment } from './environment.ts';
import type { EndReason } from './last-event.ts';
import { LazyFiles } from './lazy-files.ts';
import type { MainCommand } from './main-command.ts';
import { Metrics } from './metrics.ts';
import { Sandbox, type SandboxParts } from './sandbox.ts';

/** The dependencies of a daemon. */
export interface DaemonParts {
  config: DaemonConfig;
  log: Log;
  clock: Clock;
  /** The plain environment of processes, without the daemon's secrets. */
  environment: Record<string, string>;
  /** Receives a copy of the main command's output. */
  stdout: Writable;
  /** Creates the local API; called with its first request. */
  createApp: (context: ApiContext, prepare: (app: HttpApp) => void) => Promise<HttpApp>;
}

/**
 * The composition root of `sandboxd`: a group of services, started in order and stopped in reverse. First the core
 * (local API, outbox), then the sandbox once it has its identity. The stages of its life are those of DaemonState.
 */
export class Daemon {
  readonly config: DaemonConfig;
  /** Called when the daemon has failed and its program must end. */
  onFault: () => void = () => {};
  /** Called when a `stop` has finished. */
  onStopped: () => void = () => {};
  readonly #stdout: Writable;
  readonly #common: Pick<SandboxParts, 'config' | 'log' | 'clock' | 'metrics' | 'environment'>;
  readonly #started_ms: number;
  readonly #life = new DaemonState();
  readonly #services = new ServiceGroup();
  readonly #core: DaemonCore;
  readonly #files: LazyFiles;
  #sandbox: Sandbox | null = null;
  /** The start, and the inits so far. */
  #starting: Promise<unknown> = Promise.resolve();
  #stopping: Promise<void> | null = null;
  #is_hurried = false;

  constructor({ config, log, clock, environment: plain, stdout, createApp }: DaemonParts) {
    this.config = config;
    this.#stdout = stdout;
    this.#started_ms = clock.monotonicMs();
    const environment = new Environment(join(config.state_dir, 'environment.json'), plain);
    this.#common = { config, log, clock, metrics: new Metrics(), environment };
    this.#core = new DaemonCore({
      ...this.#common,
      services: this.#services,
      createApp: (prepare) => createApp(this.#apiContext(), prepare),
      onFault: () => this.onFault(),
    });
    this.#files = new LazyFiles(this.#common);
  }

  /** The current state, as clients see it. */
  get state(): SandboxState | 'starting' {
    return this.#life.shown;
  }

  /** The main command; null if there is none. */
  get main(): MainCommand | null {
    return this.#sandbox?.main ?? null;
  }

  /** The base URL of the local API. */
  get url(): string {
    return this.#core.api.url;
  }

  /** The port of the local API. */
  get port(): number {
    return this.#core.api.listeners.port;
  }

  /** Starts everything, up to `awaiting_init` or `running`. Throws StartError with a message of one line. */
  start(): Promise<void> {
    const started = this.#start();
    this.#starting = started;
    return started;
  }

  async #start(): Promise<void> {
    await this.#core.start();
    await this.#services.start(this.#files);
    const { sandbox_id, team_id, webhook_url, webhook_secret, webhook_retry, watch_dir, await_init } =
      this.config;
    if (await_init) {
      this.#life.enter('awaiting_init');
      this.#core.gate.open();
      return this.#core.preload();
    }
    await this.#startSandbox(
      {
        sandbox_id,
        team_id,
        webhook_url,
        webhook_secret,
        webhook_guard: null,
        webhook_egress: 'direct',
        webhook_events: null,
        webhook_retry,
        watch_dir,
        watch_ignore: [],
        record_key: null,
      },
      {},
    );
  }

  async #initialise(given: Initialisation, env: Record<string, string>): Promise<void> {
    if (this.#life.is_ending) throw new ApiError('shutting_down');
    const started = this.#startSandbox(given, env);
    this.#starting = Promise.allSettled([this.#starting, started]);
    await started;
  }

  async #startSandbox(given: Initialisation, env: Record<string, string>): Promise<void> {
    await this.#core.adopt(given);
    if (Object.keys(env).length > 0) this.#common.environment.change(env);
    const sandbox = new Sandbox(given, {
      ...this.#common,
      core: this.#core,
      life: this.#life,
      stdout: this.#stdout,
      uptimeMs: () => this.#uptimeMs(),
    });
    this.#sandbox = sandbox;
    try {
      await this.#services.start(sandbox);
    } catch (error) {
      // An init may be tried again, with another sandbox.
      this.#sandbox = null;
      throw error;
    }
    this.#life.enter('running');
    this.#common.log.info({ sandbox_id: given.sandbox_id }, 'ready');
  }

  #apiContext(): ApiContext {
    return new ApiContext({
      ...this.#common,
      life: this.#life,
      core: this.#core,
      sandbox: () => this.#sandbox,
      uptimeMs: () => this.#uptimeMs(),
      files: () => this.#files.load(),
      initialise: (given, env) => this.#initialise(given, env),
      stop: () => this.stop('api', null),
    });
  }

  #uptimeMs(): number {
    return Math.round(this.#common.clock.monotonicMs() - this.#started_ms);
  }

  /** Sends a signal to the main command; returns false if none runs. */
  forward(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): boolean {
    return this.main?.forward(signal) ?? false;
  }

  /**
   * Ends the sandbox: processes, then `sandbox.killed`, then the flush. Idempotent. For `api` nothing more is
   * delivered: the caller takes over the pending records. Throws the first error of a part that did not stop.
   */
  stop(reason: EndReason, signal: string | null): Promise<void> {
    this.#stopping ??= this.#stop(reason, signal);
    return this.#stopping;
  }

  async #stop(reason: EndReason, signal: string | null): Promise<void> {
    this.#life.enter('stopping');
    this.#core.release();
    await this.#starting.catch(() => {});
    await this.#sandbox?.announceEnd({ reason, signal });
    if (this.#is_hurried) await this.#sandbox?.hurry();
    await this.#services.stop();
    this.#life.enter('stopped');
    this.onStopped();
  }

  /** Stops what a failed start has started. */
  async abandon(): Promise<void> {
    this.#life.enter('stopping');
    this.#core.release();
    await this.#services.abandon(this.#common.log);
    this.#life.enter('stopped');
  }

  /** Makes a `stop` in progress end at once: it waits only for the last event. */
  async hurry(): Promise<void> {
    this.#is_hurried = true;
    await this.#sandbox?.hurry();
  }
}
