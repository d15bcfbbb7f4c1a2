import { rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { type Clock, sleep } from '../base/clock.ts';
import type { HttpApp } from '../base/http/app.ts';
import { newId } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import { VERSION } from '../base/version.ts';
import { PAUSE_FLUSH_MS } from '../contract/defaults.ts';
import { ApiError, StartError } from '../contract/errors.ts';
import type { SandboxEvent } from '../contract/events.ts';
import type { SandboxState, SandboxView } from '../contract/sandboxes.ts';
import { Dispatcher } from '../outbox/dispatcher.ts';
import { UrlSender } from '../outbox/sender.ts';
import { OutboxClient } from '../outbox/sqlite/client.ts';
import { diskAnswers } from '../outbox/sqlite/files/disk-answers.ts';
import { Retention } from '../outbox/sqlite/retention.ts';
import { Supervisor } from '../process/supervisor.ts';
import type { Watcher } from '../watch/thread/watcher.ts';
import type { AddressGuard } from '../webhook/address-guard.ts';
import { SharedLookup } from '../webhook/lookup.ts';
import { HttpTransport } from '../webhook/transport.ts';
import { Guard } from './api/guard.ts';
import { LazyApp } from './api/lazy-app.ts';
import type { DaemonConfig } from './config.ts';
import { ControlToken } from './control-token.ts';
import { Environment } from './environment.ts';
import { Listeners } from './listeners.ts';
import { MainCommand } from './main-command.ts';
import { Metrics } from './metrics.ts';
import { OutboxHealth } from './outbox-health.ts';
import { isOwnAddress } from './own-address.ts';
import { PauseSwitch } from './pause-switch.ts';
import { Publisher } from './publisher.ts';
import { readiness } from './readiness.ts';
import { StartGate, startingError } from './start-gate.ts';
import { OutboxTreeStore } from './tree-store.ts';

/** How long until a disk that refused is asked again, while starting. */
const DISK_RETRY_MS = 1_000;
/** How long until an event that the outbox refused is offered again. */
const EMIT_RETRY_MS = 1_000;
/** Publishes taken for each connection of the delivery in one turn, while that is behind. */
const PUBLISHES_PER_DELIVERY = 1.5;
/** How long the delivery of a backlog waits for the rest of the daemon. */
const BACKLOG_WAIT_MS = 1_000;
/** A commit under way for so long is told as trouble. */
const SLOW_COMMIT_MS = 2_000;

/** A copy of the outbox, there only while the sandbox is held still for a fork. */
const OUTBOX_COPY = 'outbox-copy.db';

/** What a sandbox is told once: by options at start, or by `POST /sandbox/init`. */
export interface Initialisation {
  sandbox_id: string;
  team_id: string;
  webhook_url: string | null;
  webhook_secret: string;
  /** Which addresses the webhook may lead to; null where whoever runs the daemon has chosen it. */
  webhook_guard: AddressGuard | null;
  watch_dir: string | null;
  /** 64 lower-case hex digits that authenticate the outbox's records; kept in memory alone. */
  record_key: string | null;
}

/** What a daemon is given. */
export interface DaemonParts {
  config: DaemonConfig;
  log: Log;
  clock: Clock;
  /** The plain environment of processes, free of the daemon's secrets. */
  environment: Record<string, string>;
  /** Where the main command's output is copied. */
  stdout: Writable;
  /** Makes the local API; called with its first request. */
  createApp: (daemon: Daemon, prepare: (app: HttpApp) => void) => Promise<HttpApp>;
}

/** Why a sandbox ends. Source: contract section 2, `sandbox.killed`. */
export type EndReason = 'signal' | 'main_process_exited' | 'api';

/** The composition root: builds the parts, starts them in order and stops them in reverse. */
export class Daemon {
  readonly config: DaemonConfig;
  readonly log: Log;
  readonly clock: Clock;
  readonly environment: Environment;
  readonly metrics = new Metrics();
  readonly #stdout: Writable;
  readonly #createApp: DaemonParts['createApp'];
  readonly #started_ms: number;
  #state: Exclude<SandboxState, 'paused'> | 'starting' = 'starting';
  #app: LazyApp | null = null;
  #listeners: Listeners | null = null;
  #store: OutboxClient | null = null;
  #publisher: Publisher | null = null;
  #supervisor: Supervisor | null = null;
  #dispatcher: Dispatcher | null = null;
  #retention: Retention | null = null;
  #watcher: Watcher | null = null;
  #main: MainCommand | null = null;
  readonly #token: ControlToken;
  readonly #gate: StartGate;
  #identity = { sandbox_id: '', team_id: '' };
  readonly #outbox_health: OutboxHealth;
  /** The start waits for a disk in trouble. */
  #awaits_disk = false;
  #switch: PauseSwitch | null = null;
  #starting: Promise<void> = Promise.resolve();
  #stopping: Promise<void> | null = null;
  #is_hurried = false;
  /** What was found damaged beside the outbox. */
  readonly #damages: string[] = [];
  #saves_memory = false;

  constructor({ config, log, clock, environment, stdout, createApp }: DaemonParts) {
    this.config = config;
    this.log = log;
    this.clock = clock;
    this.#stdout = stdout;
    this.#createApp = createApp;
    this.#started_ms = clock.monotonicMs();
    this.#outbox_health = new OutboxHealth(
      log,
      this.metrics,
      clock,
      () => void this.#store?.append({ drafts: [] }),
    );
    this.#gate = new StartGate(clock);
    this.#token = new ControlToken(config.control_token_file, config.state_dir, clock);
    this.environment = new Environment(join(config.state_dir, 'environment.json'), environment);
  }

  get state(): SandboxState | 'starting' {
    return this.#state === 'running' && this.#switch?.is_paused ? 'paused' : this.#state;
  }

  get store(): OutboxClient {
    if (!this.#store) throw startingError();
    return this.#store;
  }

  get publisher(): Publisher {
    if (this.#gate.is_open && !this.#awaits_disk) return this.#eventSink();
    throw startingError();
  }

  /** Open to the daemon's own events before it is to others'. */
  #eventSink(): Publisher {
    if (!this.#publisher) throw startingError();
    return this.#publisher;
  }

  get supervisor(): Supervisor {
    if (this.#state === 'awaiting_init') throw new ApiError('conflict', 'The sandbox awaits its init.');
    if (!this.#supervisor || !this.#gate.is_open) throw startingError();
    return this.#supervisor;
  }

  get dispatcher(): Dispatcher | null {
    return this.#dispatcher;
  }

  get watcher(): Watcher | null {
    return this.#watcher;
  }

  /** The main command's end, if there is one and the daemon is to end with it. */
  get main(): MainCommand | null {
    return this.#main;
  }

  /** Starts everything; throws StartError with the one line that a user is to see. */
  start(): Promise<void> {
    this.#starting = this.#start();
    return this.#starting;
  }

  async #start(): Promise<void> {
    const { config } = this;
    await this.#listen();
    const begins_here = await diskAnswers(config.state_dir, this.clock);
    this.#store = await this.#untilTheDiskTakesIt(() => this.#openStore(begins_here));
    this.#publisher = new Publisher(this.#store, this.clock);
    await this.#announce();
    if (config.await_init) {
      this.#state = 'awaiting_init';
      this.#gate.open();
      await this.#getReady();
      return;
    }
    await this.initialise({
      sandbox_id: config.sandbox_id,
      team_id: config.team_id,
      webhook_url: config.webhook_url,
      webhook_secret: config.webhook_secret,
      webhook_guard: null,
      watch_dir: config.watch_dir,
      record_key: null,
    });
  }

  /**
   * Records pass through and are gone: a heap that is collected early stays a third of the size, for no more CPU. Not
   * before there are some: a changed flag makes the engine compile anew what it holds compiled.
   */
  #saveMemory(): void {
    if (this.#saves_memory) return;
    this.#saves_memory = true;
    setFlagsFromString('--semi-space-growth-factor=1');
    setFlagsFromString('--heap-growing-percent=20');
  }

  /** In a warm pool there is time now, and none once the init comes. */
  async #getReady(): Promise<void> {
    await Promise.all([this.#app?.load(), HttpTransport.load()]);
  }

  /** Tells where the API is, once it can be used as far as the disk allows. */
  async #announce(): Promise<void> {
    const { config } = this;
    if (this.#token.is_read) return;
    this.#token.read();
    this.#loadEnvironment();
    this.environment.add({ SANDBOXD_URL: this.url });
    if (config.control_socket) await this.#listeners?.listenOnSocket(config.control_socket);
    this.log.info({ url: this.url, version: VERSION }, 'listening');
  }

  #loadEnvironment(): void {
    const set_aside = this.environment.load();
    if (set_aside === null) return;
    this.log.error({ set_aside }, 'environment.json is damaged and is set aside: its variables are missing');
    this.#damages.push(`a damaged environment.json is set aside at ${set_aside}: its variables are missing`);
  }

  async #openStore(begins_here: boolean): Promise<OutboxClient> {
    const { config } = this;
    const limits = {
      max_bytes: config.outbox_max_bytes,
      max_records: config.outbox_max_records,
      window_ms: config.delivery_window_ms,
    };
    const fault = (error: Error) => {
      this.log.fatal({ reason: error.message }, 'the outbox writer failed');
      this.on_fault();
    };
    const settings = { state_dir: config.state_dir, limits };
    const store = await OutboxClient.open(settings, this.clock, fault, begins_here);
    store.onCommitMeasured((report) => {
      this.metrics.committed(report);
      if (store.is_in_thread) this.#saveMemory();
      this.#outbox_health.observe(report.trouble);
      this.#token.look();
    });
    store.onMended((mended) => {
      this.#outbox_health.mended(mended);
      if (mended.how === 'restored') this.#token.restore();
    });
    return store;
  }

  /** Repeats what a disk in trouble refuses, until it is over or the daemon ends: meanwhile the API says so. */
  async #untilTheDiskTakesIt<Result>(work: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        const result = await work();
        this.#awaits_disk = false;
        return result;
      } catch (error) {
        const may_pass = error instanceof ApiError && error.code === 'outbox_unavailable';
        if (!may_pass || this.#state === 'stopping') throw error;
        const { reason } = (error.details ?? {}) as { reason?: string };
        this.#outbox_health.observe(reason ?? error.message);
        this.#awaits_disk = true;
        this.#gate.release();
        await this.#announce();
      }
      await sleep(this.clock, DISK_RETRY_MS);
    }
  }

  get url(): string {
    const [address = '127.0.0.1'] = this.#listeners?.addresses ?? [];
    return `http://${address.includes(':') ? `[${address}]` : address}:${this.#listeners?.port}`;
  }

  get port(): number {
    return this.#listeners?.port ?? 0;
  }

  async #listen(): Promise<void> {
    const { host, port } = this.config;
    this.#app = new LazyApp(() => this.#createApp(this, (made) => this.#prepare(made, listeners)));
    const listeners = new Listeners(this.#app);
    this.#listeners = listeners;
    await listeners.listen(host, port);
  }

  /** What comes before every route: the count of requests under way, and the guard. */
  #prepare(app: HttpApp, listeners: Listeners): void {
    listeners.observe(app);
    const guard = new Guard({
      host: this.config.host,
      port: () => listeners.port,
      token: this.#token,
      is_control: listeners.isControl,
    });
    app.addHook('onRequest', (request, _reply, done) => {
      if (this.#gate.is_open || this.#awaits_disk || guard.isEarly(request)) {
        guard.check(request);
        return done();
      }
      void this.#gate
        .passed()
        .then(() => guard.check(request))
        .then(() => done(), done);
    });
  }

  /** Makes this the sandbox it is told to be, and everything run. Throws StartError or a field's error. */
  async initialise(given: Initialisation, env: Record<string, string> = {}): Promise<void> {
    const { store, config } = this;
    const publisher = this.#eventSink();
    await this.#checkWebhook(given.webhook_url);
    const found = store.found_sandbox_id;
    // Before the outbox is this sandbox's: a death in between must not leave the parent's token in place.
    if (found !== null && found !== given.sandbox_id) this.#forgetOtherSandbox();
    const { sandbox_id, team_id, webhook_secret: secret, record_key } = given;
    const owner = { sandbox_id, team_id, secret, record_key };
    const adoption = await this.#untilTheDiskTakesIt(() => store.adopt(owner));
    this.#identity = { sandbox_id: given.sandbox_id, team_id: given.team_id };
    this.#outbox_health.adopted(adoption);
    this.#outbox_health.observe(null);
    if (Object.keys(env).length > 0) this.environment.change(env);
    if (given.webhook_url) await this.#startDelivery(given.webhook_url, given);
    this.#retention = new Retention(store, this.clock, this.log);
    await this.#retention.start();
    this.#supervisor = new Supervisor({
      clock: this.clock,
      log: this.log,
      directory: join(config.state_dir, 'processes'),
      emit: (event, key) => publisher.emit(event, key),
      environment: () => this.environment.current(),
      default_user: config.process_user,
      grace_ms: config.shutdown_grace_ms,
    });
    await this.#supervisor.start();
    this.#gate.open();
    if (given.watch_dir) await this.#startWatcher(given.watch_dir, given.webhook_url !== null);
    if (config.command.length > 0) {
      this.#main = await MainCommand.start(this.#supervisor, config, this.#stdout);
    }
    await this.#emitForSure({
      event_type: 'sandbox.ready',
      happened_at_ms: this.clock.wallMs(),
      payload: { http_port: this.port, version: VERSION, watch_dir: given.watch_dir },
    });
    this.#switch = new PauseSwitch({
      clock: this.clock,
      store,
      publisher,
      supervisor: this.#supervisor,
      dispatcher: this.#dispatcher,
      watcher: this.#watcher,
    });
    if (this.#state !== 'stopping') this.#state = 'running';
    this.log.info({ sandbox_id: given.sandbox_id }, 'ready');
  }

  /** Whether a connection is one over the control socket. */
  isControl(socket: Socket): boolean {
    return this.#listeners?.isControl(socket) ?? false;
  }

  /** From now on control is served on the control socket alone. */
  forgetToken(): void {
    this.#token.forget();
  }

  async #checkWebhook(webhook_url: string | null): Promise<void> {
    if (!webhook_url || !this.#listeners) return;
    if (await isOwnAddress(new URL(webhook_url), this.#listeners.addresses, this.#listeners.port)) {
      throw new StartError(
        "--webhook-url is this daemon's own API: each delivery would be the next event",
        2,
      );
    }
  }

  /** A fork holds its parent's files: its token, environment and processes are not this sandbox's. */
  #forgetOtherSandbox(): void {
    this.#token.renew();
    this.environment.clear();
    rmSync(join(this.config.state_dir, 'processes'), { recursive: true, force: true });
  }

  async #startDelivery(
    url: string,
    { webhook_secret: secret, webhook_guard }: Initialisation,
  ): Promise<void> {
    const { store, config, clock, log, metrics } = this;
    const transport = new HttpTransport(clock, config.delivery_concurrency, new SharedLookup(webhook_guard));
    this.#dispatcher = new Dispatcher(
      { concurrency: config.delivery_concurrency },
      {
        store,
        sender: new UrlSender(url, secret, config.attempt_timeout_ms, transport),
        clock,
        log,
        onAttempt: (report) => metrics.attempted(report, clock.wallMs()),
      },
    );
    const dispatcher = this.#dispatcher;
    // A turn takes hardly more publishes than it can deliver, so that many publishers do not starve the delivery.
    const pace = Math.ceil(PUBLISHES_PER_DELIVERY * config.delivery_concurrency);
    store.paceAppends((waiting) => (dispatcher.is_busy ? pace : waiting));
    this.#eventSink().open();
    if (store.counts().pending > 0) await this.#getBusy();
    await dispatcher.start();
  }

  /** With a backlog: what is answered while the API loads or the outbox moves is marked late, and sent twice by a kill. */
  async #getBusy(): Promise<void> {
    const ready = Promise.all([this.#app?.load(), HttpTransport.load(), this.store.moved]);
    await Promise.race([ready, sleep(this.clock, BACKLOG_WAIT_MS)]);
  }

  /** Without a webhook there is nobody to tell: then `watch_dir` is only checked. */
  async #startWatcher(watch_dir: string, is_told: boolean): Promise<void> {
    const { Watcher, checkWatchDir } = await import('../watch/thread/watcher.ts');
    const { config, clock, log, store } = this;
    const own_paths = [config.state_dir, config.control_token_file, config.control_socket ?? ''].filter(
      Boolean,
    );
    try {
      checkWatchDir(watch_dir, own_paths);
    } catch (error) {
      throw new StartError(`--watch-dir ${(error as Error).message}`, 2, error);
    }
    if (!is_told) return;
    const options = { watch_dir, ignore: config.watch_ignore, own_paths, clock, log };
    this.#watcher = new Watcher({ ...options, store: new OutboxTreeStore(store) });
    await this.#watcher.start();
  }

  /** Called when the daemon cannot go on; whoever runs it ends it. */
  on_fault: () => void = () => {};

  /** Called when a `stop` is done, whoever asked for it. */
  on_stopped: () => void = () => {};

  /** Emits, and where the outbox refuses, again until it takes it or the daemon ends. */
  async #emitForSure(event: SandboxEvent, within_ms = Number.POSITIVE_INFINITY): Promise<void> {
    const key = newId(`${event.event_type} `, event.happened_at_ms);
    const end_ms = this.clock.monotonicMs() + within_ms;
    for (;;) {
      try {
        await this.#eventSink().emit(event, key);
        return;
      } catch (error) {
        const { event_type } = event;
        this.log.warn({ event_type, reason: (error as Error).message }, 'an event waits for the outbox');
        if (this.clock.monotonicMs() + EMIT_RETRY_MS > end_ms || this.#is_hurried) return;
        if (event_type === 'sandbox.ready' && this.#state === 'stopping') return;
        await sleep(this.clock, EMIT_RETRY_MS);
      }
    }
  }

  /** Freezes every tree and stops delivering. Idempotent. Source: contract section 4, `/sandbox/pause`. */
  async pause(reason: string | null, flush_ms = PAUSE_FLUSH_MS): Promise<void> {
    await this.#pauseSwitch().pause(reason, flush_ms);
  }

  /** Lets everything go on. Idempotent. */
  async resume(reason: string | null): Promise<void> {
    await this.#pauseSwitch().resume(reason);
  }

  #pauseSwitch(): PauseSwitch {
    if (this.#state === 'stopping') throw new ApiError('shutting_down');
    if (this.#state !== 'running' || !this.#switch) {
      throw new ApiError('conflict', `The sandbox is ${this.#state}.`);
    }
    return this.#switch;
  }

  /** For `GET /sandbox`. */
  async view(): Promise<SandboxView> {
    return {
      ...this.#identity,
      state: this.state === 'starting' ? 'running' : this.state,
      version: VERSION,
      uptime_ms: this.uptime_ms,
      outbox: this.store.counts(),
      endpoint: this.#dispatcher?.endpointHealth() ?? { healthy: true, next_probe_at: null },
      watcher: this.#watcher?.status() ?? null,
      resource_usage: (await this.#supervisor?.usage()) ?? { cpu_ms: 0, memory_bytes: 0, processes: 0 },
    };
  }

  get uptime_ms(): number {
    return Math.round(this.clock.monotonicMs() - this.#started_ms);
  }

  /** Why the daemon is not ready, or null; and what is lost or polled although it is. */
  readiness(): { not_ready: string | null; degraded: string[] } {
    const is_slow = (this.#store?.waitingMs() ?? 0) > SLOW_COMMIT_MS;
    const { trouble, damages } = this.#outbox_health;
    const outbox_trouble = trouble ?? (is_slow ? 'the disk does not answer' : null);
    const watcher_degraded = this.#watcher?.status().degraded ?? null;
    const outbox_damages = [...this.#damages, ...damages];
    return readiness({ state: this.state, outbox_damages, outbox_trouble, watcher_degraded });
  }

  /**
   * Keeps every tree still, without an event, while `work` goes on with a consistent copy of the outbox beside it:
   * the whole root file system can be copied then, the copy in place of the outbox.
   */
  async hold(work: () => Promise<void>): Promise<void> {
    const copy = join(this.config.state_dir, OUTBOX_COPY);
    await this.#pauseSwitch().hold(async () => {
      try {
        await this.store.copyTo(copy);
        await work();
      } finally {
        rmSync(copy, { force: true });
      }
    });
  }

  /** Hands a signal to the main command; false where there is none that runs. */
  forward(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): boolean {
    return this.#main?.forward(signal) ?? false;
  }

  /**
   * Ends the sandbox: processes, then `sandbox.killed`, then the flush. Idempotent. For `api` nothing more is
   * delivered: whoever asked for the end takes over what is pending.
   */
  stop(reason: EndReason, signal: string | null): Promise<void> {
    this.#stopping ??= this.#stop(reason, signal);
    return this.#stopping;
  }

  /** Takes back what a start that failed has begun. */
  async abandon(): Promise<void> {
    this.#state = 'stopping';
    await this.#listeners?.close();
    await this.#supervisor?.stop();
    await this.#watcher?.stop();
    await this.#dispatcher?.stop();
    await this.#retention?.stop();
    await this.#store?.close();
  }

  /** Makes a `stop` that is under way end at once: nothing is waited for but the last event. */
  async hurry(): Promise<void> {
    this.#is_hurried = true;
    for (const { process_id, exited_at } of (await this.#supervisor?.list()) ?? []) {
      if (exited_at === null) this.#supervisor?.signal(process_id, 'SIGKILL');
    }
    this.#dispatcher?.pause();
  }

  async #stop(reason: EndReason, signal: string | null): Promise<void> {
    const grace_ms = this.config.shutdown_grace_ms;
    this.#state = 'stopping';
    this.#gate.release();
    await this.#starting.catch(() => {});
    const was_initialised = this.#supervisor !== null;
    if (reason === 'api') this.#dispatcher?.pause();
    else if (this.#supervisor?.is_paused) await this.#dispatcher?.start();
    await this.#supervisor?.stop();
    await this.#watcher?.stop();
    this.#publisher?.close();
    if (was_initialised) {
      const payload = { reason, signal, uptime_ms: this.uptime_ms };
      await this.#emitForSure(
        { event_type: 'sandbox.killed', happened_at_ms: this.clock.wallMs(), payload },
        grace_ms,
      );
    }
    if (!this.#is_hurried && reason !== 'api') await this.#dispatcher?.flush(grace_ms);
    await this.#listeners?.close();
    await this.#dispatcher?.stop();
    await this.#retention?.stop();
    await this.#store?.close();
    this.on_stopped();
  }
}
