import { rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import type { Clock } from '../base/clock.ts';
import type { HttpApp } from '../base/http/app.ts';
import type { Log } from '../base/log.ts';
import { VERSION } from '../base/version.ts';
import { PAUSE_FLUSH_MS } from '../contract/defaults.ts';
import { ApiError, StartError } from '../contract/errors.ts';
import type { SandboxState, SandboxView } from '../contract/sandboxes.ts';
import type { Dispatcher } from '../outbox/dispatcher.ts';
import type { OutboxClient } from '../outbox/sqlite/client.ts';
import { diskAnswers } from '../outbox/sqlite/files/disk-answers.ts';
import type { Supervisor } from '../process/supervisor.ts';
import type { Watcher } from '../watch/thread/watcher.ts';
import { HttpTransport } from '../webhook/transport.ts';
import { LocalApi } from './api/local-api.ts';
import type { DaemonConfig } from './config.ts';
import { ControlToken } from './control-token.ts';
import { Environment } from './environment.ts';
import type { MainCommand } from './main-command.ts';
import { Metrics } from './metrics.ts';
import { OutboxHealth } from './outbox-health.ts';
import { isOwnAddress } from './own-address.ts';
import type { PauseSwitch } from './pause-switch.ts';
import { Publisher } from './publisher.ts';
import { type DaemonReadiness, readiness } from './readiness.ts';
import { DiskWait } from './start/disk-wait.ts';
import { emitUntilStored } from './start/lifecycle-event.ts';
import { openOutbox } from './start/open-outbox.ts';
import { type Initialisation, Sandbox } from './start/sandbox.ts';
import { StartGate, startingError } from './start-gate.ts';
import { readSandboxView } from './views.ts';

/** A commit in progress for longer than this makes the daemon not ready. */
const SLOW_COMMIT_MS = 2_000;

/** A copy of the outbox; exists only while the sandbox is quiesced for a fork. */
const OUTBOX_COPY = 'outbox-copy.db';

/** What a daemon is given. */
export interface DaemonParts {
  config: DaemonConfig;
  log: Log;
  clock: Clock;
  /** The plain environment of processes, without the daemon's secrets. */
  environment: Record<string, string>;
  /** Receives a copy of the main command's output. */
  stdout: Writable;
  /** Creates the local API; called with its first request. */
  createApp: (daemon: Daemon, prepare: (app: HttpApp) => void) => Promise<HttpApp>;
}

/** Why a sandbox ends. Source: contract section 2, `sandbox.killed`. */
export type EndReason = 'signal' | 'main_process_exited' | 'api';

/**
 * The composition root of `sandboxd`.
 *
 * | state | entered by | API |
 * |---|---|---|
 * | `starting` | construction | requests wait, then 503 |
 * | `awaiting_init` | `start` with `--await-init` | no processes, no publishes |
 * | `running` | `start`, or `initialise` after `awaiting_init` | everything |
 * | `paused` | `pause`, until `resume` | everything; processes are frozen |
 * | `stopping` | `stop` or `abandon`; final | until the last event is flushed |
 *
 * It starts the API, the outbox, and then the sandbox: delivery, retention, supervision, watch, main command. It stops
 * in the order that loses no event: processes, watch, the last event and its flush, the API, retention, delivery, and
 * the outbox last.
 */
export class Daemon {
  readonly config: DaemonConfig;
  readonly log: Log;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly metrics = new Metrics();
  /** Called when the daemon has failed and its program must end. */
  onFault: () => void = () => {};
  /** Called when a `stop` has finished. */
  onStopped: () => void = () => {};
  readonly #stdout: Writable;
  readonly #started_ms: number;
  readonly #api: LocalApi;
  readonly #token: ControlToken;
  readonly #gate: StartGate;
  readonly #outbox_health: OutboxHealth;
  readonly #disk: DiskWait;
  /** Damage found outside the outbox, one line each. */
  readonly #damages: string[] = [];
  #state: Exclude<SandboxState, 'paused'> | 'starting' = 'starting';
  #identity = { sandbox_id: '', team_id: '' };
  #store: OutboxClient | null = null;
  #publisher: Publisher | null = null;
  #sandbox: Sandbox | null = null;
  #starting: Promise<void> = Promise.resolve();
  #stopping: Promise<void> | null = null;
  #is_hurried = false;

  constructor({ config, log, clock, environment, stdout, createApp }: DaemonParts) {
    this.config = config;
    this.log = log;
    this.clock = clock;
    this.environment = new Environment(join(config.state_dir, 'environment.json'), environment);
    this.#stdout = stdout;
    this.#started_ms = clock.monotonicMs();
    const probe = () => void this.#store?.append({ drafts: [] });
    this.#outbox_health = new OutboxHealth(log, this.metrics, clock, probe);
    this.#gate = new StartGate(clock);
    this.#token = new ControlToken(config.control_token_file, config.state_dir, clock);
    this.#disk = new DiskWait(clock, (reason) => this.#reportDiskTrouble(reason));
    this.#api = new LocalApi({
      host: config.host,
      port: config.port,
      token: this.#token,
      gate: this.#gate,
      isGateBypassed: () => this.#disk.is_waiting,
      createApp: (prepare) => createApp(this, prepare),
    });
  }

  /** The present state; the table above. */
  get state(): SandboxState | 'starting' {
    return this.#state === 'running' && this.#sandbox?.pause_switch?.is_paused ? 'paused' : this.#state;
  }

  /** The outbox. Throws `outbox_unavailable` until it is open. */
  get store(): OutboxClient {
    if (!this.#store) throw startingError();
    return this.#store;
  }

  /** Where clients publish. Throws `outbox_unavailable` until the daemon has started. */
  get publisher(): Publisher {
    if (this.#publisher && this.#gate.is_open && !this.#disk.is_waiting) return this.#publisher;
    throw startingError();
  }

  /** The processes. Throws `conflict` before the init and `outbox_unavailable` until the daemon has started. */
  get supervisor(): Supervisor {
    if (this.#state === 'awaiting_init') throw new ApiError('conflict', 'The sandbox awaits its init.');
    if (!this.#sandbox?.supervisor || !this.#gate.is_open) throw startingError();
    return this.#sandbox.supervisor;
  }

  /** The delivery; null without a webhook. */
  get dispatcher(): Dispatcher | null {
    return this.#sandbox?.dispatcher ?? null;
  }

  /** The directory watch; null if there is none. */
  get watcher(): Watcher | null {
    return this.#sandbox?.watcher ?? null;
  }

  /** The main command; null if there is none. */
  get main(): MainCommand | null {
    return this.#sandbox?.main ?? null;
  }

  /** The base URL of the local API. */
  get url(): string {
    return this.#api.url;
  }

  /** The port of the local API. */
  get port(): number {
    return this.#api.port;
  }

  /** Time since construction, in ms. */
  get uptime_ms(): number {
    return Math.round(this.clock.monotonicMs() - this.#started_ms);
  }

  /** Starts everything, up to `awaiting_init` or `running`. Throws StartError with a message of one line. */
  start(): Promise<void> {
    this.#starting = this.#start();
    return this.#starting;
  }

  async #start(): Promise<void> {
    const { config, clock, log, metrics } = this;
    await this.#api.start();
    const begins_here = await diskAnswers(config.state_dir, clock);
    const onFault = () => this.onFault();
    const parts = { config, clock, log, metrics, health: this.#outbox_health, token: this.#token, onFault };
    this.#store = await this.#disk.untilAccepted(() => openOutbox(parts, begins_here));
    this.#publisher = new Publisher(this.#store, clock);
    await this.#publishAddress();
    if (config.await_init) {
      this.#state = 'awaiting_init';
      this.#gate.open();
      await this.#preload();
      return;
    }
    const { sandbox_id, team_id, webhook_url, webhook_secret, watch_dir } = config;
    const given = { sandbox_id, team_id, webhook_url, webhook_secret, watch_dir };
    await this.initialise({ ...given, webhook_guard: null, record_key: null });
  }

  /** Loads what the init will need: a daemon of a warm pool has time now, and none then. */
  async #preload(): Promise<void> {
    await Promise.all([this.#api.load(), HttpTransport.load()]);
  }

  async #reportDiskTrouble(reason: string): Promise<void> {
    this.#outbox_health.observe(reason);
    this.#gate.release();
    await this.#publishAddress();
  }

  /** Reads token and environment and makes the API's address known, as soon as the API can answer anything. */
  async #publishAddress(): Promise<void> {
    const { config } = this;
    if (this.#token.is_read) return;
    this.#token.read();
    this.#loadEnvironment();
    this.environment.add({ SANDBOXD_URL: this.url });
    if (config.control_socket) await this.#api.listenOnSocket(config.control_socket);
    this.log.info({ url: this.url, version: VERSION }, 'listening');
  }

  #loadEnvironment(): void {
    const set_aside = this.environment.load();
    if (set_aside === null) return;
    this.log.error({ set_aside }, 'environment.json is damaged and is set aside: its variables are missing');
    this.#damages.push(`a damaged environment.json is set aside at ${set_aside}: its variables are missing`);
  }

  /** Gives the sandbox its identity and starts all of it. Throws StartError, or `invalid_request` for a field. */
  async initialise(given: Initialisation, env: Record<string, string> = {}): Promise<void> {
    const { store, config, clock, log, metrics, environment } = this;
    const publisher = this.#publisher;
    if (!publisher) throw startingError();
    await this.#checkWebhook(given.webhook_url);
    const { sandbox_id, team_id, webhook_secret: secret, record_key } = given;
    const found = store.found_sandbox_id;
    // Must precede the adoption: after a crash in between, the parent's token must not be left in place.
    if (found !== null && found !== sandbox_id) this.#forgetOtherSandbox();
    const owner = { sandbox_id, team_id, secret, record_key };
    const adoption = await this.#disk.untilAccepted(() => store.adopt(owner));
    this.#identity = { sandbox_id, team_id };
    this.#outbox_health.reportAdoption(adoption);
    this.#outbox_health.observe(null);
    if (Object.keys(env).length > 0) environment.change(env);
    this.#sandbox = new Sandbox(given, {
      config,
      clock,
      log,
      metrics,
      environment,
      store,
      publisher,
      stdout: this.#stdout,
      port: this.port,
      loadApi: () => this.#api.load(),
      onSupervising: () => this.#gate.open(),
      isStopping: () => this.#state === 'stopping',
    });
    await this.#sandbox.start();
    if (this.#state !== 'stopping') this.#state = 'running';
    log.info({ sandbox_id }, 'ready');
  }

  async #checkWebhook(webhook_url: string | null): Promise<void> {
    if (!webhook_url) return;
    if (await isOwnAddress(new URL(webhook_url), this.#api.addresses, this.#api.port)) {
      throw new StartError(
        "--webhook-url is this daemon's own API: each delivery would be the next event",
        2,
      );
    }
  }

  /** Removes what a fork inherits from its parent: token, environment and processes. */
  #forgetOtherSandbox(): void {
    this.#token.renew();
    this.environment.clear();
    rmSync(join(this.config.state_dir, 'processes'), { recursive: true, force: true });
  }

  /** Whether a connection came over the control socket. */
  isControl(socket: Socket): boolean {
    return this.#api.isControl(socket);
  }

  /** Removes the control token: from now on only the control socket grants control. */
  forgetToken(): void {
    this.#token.forget();
  }

  /** Freezes all processes and stops delivering. Idempotent. Source: contract section 4, `/sandbox/pause`. */
  async pause(reason: string | null, flush_ms = PAUSE_FLUSH_MS): Promise<void> {
    await this.#pauseSwitch().pause(reason, flush_ms);
  }

  /** Resumes processes and delivery. Idempotent. Source: contract section 4, `/sandbox/resume`. */
  async resume(reason: string | null): Promise<void> {
    await this.#pauseSwitch().resume(reason);
  }

  /**
   * Freezes all processes during `work`, without an event, with a consistent copy of the outbox beside it: the whole
   * root file system can then be copied, with that copy in place of the outbox.
   */
  async quiesce(work: () => Promise<void>): Promise<void> {
    const copy = join(this.config.state_dir, OUTBOX_COPY);
    await this.#pauseSwitch().quiesce(async () => {
      try {
        await this.store.copyTo(copy);
        await work();
      } finally {
        rmSync(copy, { force: true });
      }
    });
  }

  #pauseSwitch(): PauseSwitch {
    if (this.#state === 'stopping') throw new ApiError('shutting_down');
    const pause_switch = this.#sandbox?.pause_switch;
    if (this.#state !== 'running' || !pause_switch) {
      throw new ApiError('conflict', `The sandbox is ${this.#state}.`);
    }
    return pause_switch;
  }

  /** The answer of `GET /sandbox`. */
  view(): Promise<SandboxView> {
    const { state, uptime_ms, store, dispatcher, watcher } = this;
    const supervisor = this.#sandbox?.supervisor ?? null;
    return readSandboxView({
      identity: this.#identity,
      state,
      uptime_ms,
      store,
      dispatcher,
      watcher,
      supervisor,
    });
  }

  /** The answer to `GET /readyz`. */
  readiness(): DaemonReadiness {
    const is_slow = (this.#store?.waitingMs() ?? 0) > SLOW_COMMIT_MS;
    const { trouble, damages } = this.#outbox_health;
    const outbox_trouble = trouble ?? (is_slow ? 'the disk does not answer' : null);
    const watcher_degraded = this.watcher?.status().degraded ?? null;
    const outbox_damages = [...this.#damages, ...damages];
    return readiness({ state: this.state, outbox_damages, outbox_trouble, watcher_degraded });
  }

  /** Sends a signal to the main command; returns false if none runs. */
  forward(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): boolean {
    return this.main?.forward(signal) ?? false;
  }

  /**
   * Ends the sandbox: processes, then `sandbox.killed`, then the flush. Idempotent. For `api` nothing more is
   * delivered: the caller takes over the pending records.
   */
  stop(reason: EndReason, signal: string | null): Promise<void> {
    this.#stopping ??= this.#stop(reason, signal);
    return this.#stopping;
  }

  /** Stops what a failed start has started. */
  async abandon(): Promise<void> {
    this.#beginStop();
    await this.#api.stop();
    await this.#sandbox?.stopSources();
    await this.#sandbox?.stopDelivery();
    await this.#store?.close();
  }

  /** Makes a `stop` in progress end at once: it waits only for the last event. */
  async hurry(): Promise<void> {
    this.#is_hurried = true;
    const supervisor = this.#sandbox?.supervisor;
    for (const { process_id, exited_at } of (await supervisor?.list()) ?? []) {
      if (exited_at === null) supervisor?.signal(process_id, 'SIGKILL');
    }
    this.dispatcher?.pause();
  }

  #beginStop(): void {
    this.#state = 'stopping';
    this.#disk.cancel();
  }

  async #stop(reason: EndReason, signal: string | null): Promise<void> {
    this.#beginStop();
    this.#gate.release();
    await this.#starting.catch(() => {});
    const sandbox = this.#sandbox;
    if (reason === 'api') this.dispatcher?.pause();
    else if (sandbox?.supervisor?.is_paused) await this.dispatcher?.start();
    await sandbox?.stopSources();
    this.#publisher?.close();
    if (sandbox?.supervisor) await this.#emitKilled(reason, signal);
    const grace_ms = this.config.shutdown_grace_ms;
    if (!this.#is_hurried && reason !== 'api') await this.dispatcher?.flush(grace_ms);
    await this.#api.stop();
    await sandbox?.stopDelivery();
    await this.#store?.close();
    this.onStopped();
  }

  /** Gives up after the grace period, or at once when hurried. */
  async #emitKilled(reason: EndReason, signal: string | null): Promise<void> {
    const { clock, log, uptime_ms } = this;
    const publisher = this.#publisher;
    if (!publisher) return;
    const end_ms = clock.monotonicMs() + this.config.shutdown_grace_ms;
    const payload = { reason, signal, uptime_ms };
    const event = { event_type: 'sandbox.killed' as const, happened_at_ms: clock.wallMs(), payload };
    const givesUp = (retry_at_ms: number) => retry_at_ms > end_ms || this.#is_hurried;
    await emitUntilStored({ publisher, clock, log }, event, givesUp);
  }
}
