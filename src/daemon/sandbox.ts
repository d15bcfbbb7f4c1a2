import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { atMost, type Clock, runTime } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { type Service, ServiceGroup } from '../base/service.ts';
import { VERSION } from '../base/version.ts';
import { ApiError, OptionError } from '../contract/errors.ts';
import { Dispatcher } from '../outbox/dispatcher.ts';
import { EndpointLog, loggedEndpoint } from '../outbox/endpoint-log.ts';
import { PublishPace } from '../outbox/publish-pace.ts';
import { UrlSender } from '../outbox/sender.ts';
import { Retention } from '../outbox/sqlite/retention.ts';
import { Supervisor } from '../process/supervisor.ts';
import type { Watcher } from '../watch/thread/watcher.ts';
import { directResolve, SharedLookup } from '../webhook/lookup.ts';
import { HttpTransport } from '../webhook/transport.ts';
import { type DaemonConfig, ownPaths } from './config.ts';
import type { DaemonCore, Initialisation } from './core.ts';
import type { DaemonState } from './daemon-state.ts';
import type { Environment } from './environment.ts';
import { type Ending, LastEvent } from './last-event.ts';
import { MainCommand } from './main-command.ts';
import type { Metrics } from './metrics.ts';
import { PauseSwitch } from './pause-switch.ts';
import { emitUntilStored } from './publisher.ts';
import { OutboxTreeStore } from './tree-store.ts';
import type { Tunnels } from './tunnels.ts';

/** The longest that the delivery of a backlog waits for the rest of the daemon. */
const BACKLOG_WAIT_MS = 1_000;

/** What a sandbox takes from its daemon. */
export interface SandboxParts {
  config: DaemonConfig;
  log: Log;
  clock: Clock;
  metrics: Metrics;
  environment: Environment;
  core: DaemonCore;
  life: DaemonState;
  /** Receives a copy of the main command's output. */
  stdout: Writable;
  uptimeMs: () => number;
}

/**
 * Everything that runs once the sandbox has its identity. Started in this order and stopped in reverse, so that no
 * event is lost: delivery, retention, last event, watch, supervision with the main command.
 */
export class Sandbox implements Service {
  readonly #parts: SandboxParts;
  readonly #given: Initialisation;
  readonly #services = new ServiceGroup();
  #last_event: LastEvent | null = null;
  #dispatcher: Dispatcher | null = null;
  #tunnels: Tunnels | null = null;
  #supervisor: Supervisor | null = null;
  #watcher: Watcher | null = null;
  #main: MainCommand | null = null;
  #pause_switch: PauseSwitch | null = null;

  constructor(given: Initialisation, parts: SandboxParts) {
    this.#given = given;
    this.#parts = parts;
  }

  /** Null without a webhook. */
  get dispatcher(): Dispatcher | null {
    return this.#dispatcher;
  }

  /** Null unless the webhook leaves through the manager. */
  get tunnels(): Tunnels | null {
    return this.#tunnels;
  }

  /** Null until supervision starts. */
  get supervisor(): Supervisor | null {
    return this.#supervisor;
  }

  /** Null without a watched directory or a webhook. */
  get watcher(): Watcher | null {
    return this.#watcher;
  }

  /** Null without a main command. */
  get main(): MainCommand | null {
    return this.#main;
  }

  /** Null until the start has finished. */
  get pause_switch(): PauseSwitch | null {
    return this.#pause_switch;
  }

  /** Starts everything in order and emits `sandbox.ready`. Throws StartError; then everything is stopped again. */
  async start(): Promise<void> {
    try {
      await this.#start();
    } catch (error) {
      await this.#services.abandon(this.#parts.log);
      throw error;
    }
  }

  /** Says how the sandbox ends, before `stop`. For `api` nothing more is delivered. */
  async announceEnd(ending: Ending): Promise<void> {
    this.#last_event?.announce(ending);
    if (ending.reason === 'api') this.#dispatcher?.pause();
    else if (this.#supervisor?.is_paused) await this.#dispatcher?.start();
  }

  /** Makes a `stop` end at once: processes are killed, and only the last event is waited for. */
  async hurry(): Promise<void> {
    this.#last_event?.hurry();
    this.#dispatcher?.pause();
    this.#supervisor?.kill();
  }

  /** Stops everything in reverse. Idempotent. */
  stop(): Promise<void> {
    return this.#services.stop();
  }

  async #start(): Promise<void> {
    const { clock, log, config, stdout, core, life, uptimeMs } = this.#parts;
    const { store, own_publisher: publisher } = core;
    const { webhook_url, record_key } = this.#given;
    if (record_key !== null) publisher.keepLifecycle();
    if (webhook_url) await this.#startDelivery(webhook_url);
    await this.#services.start(new Retention(store, clock, log));
    const { dispatcher } = this;
    const grace_ms = config.shutdown_grace_ms;
    this.#last_event = this.#services.add(
      new LastEvent({ clock, log, publisher, dispatcher, grace_ms, uptimeMs }),
    );
    // Before the processes, because it stops after them: it still reports what they write at their end.
    this.#services.add({ stop: async () => this.#watcher?.stop() });
    const supervisor = await this.#startSupervision();
    core.gate.open();
    await this.#startWatcher();
    const { watcher } = this;
    if (config.command.length > 0) this.#main = await MainCommand.start(supervisor, config, stdout);
    const ready = {
      event_type: 'sandbox.ready' as const,
      happened_at_ms: clock.wallMs(),
      payload: {
        http_port: core.api.listeners.port,
        version: VERSION,
        watch_dir: watcher?.status().watch_dir ?? null,
      },
    };
    await emitUntilStored({ publisher, clock, log }, ready, () => life.is_ending);
    this.#pause_switch = new PauseSwitch({
      clock,
      state_dir: config.state_dir,
      store,
      publisher,
      supervisor,
      dispatcher,
      watcher,
      onStage: (stage) => life.enter(stage),
    });
  }

  async #startDelivery(url: string): Promise<void> {
    const { config, log, clock, metrics, core } = this.#parts;
    const { store } = core;
    const { webhook_secret, webhook_events, webhook_retry } = this.#given;
    const concurrency = config.delivery_concurrency;
    const transport = await this.#makeTransport(concurrency);
    const sender = new UrlSender(url, webhook_secret, config.attempt_timeout_ms, transport);
    const endpoint_log = new EndpointLog(log, clock, loggedEndpoint(url) ?? '');
    const pace = new PublishPace(concurrency);
    const dispatcher = new Dispatcher(
      { concurrency },
      {
        store,
        sender,
        clock,
        log,
        retryOf: () => webhook_retry,
        onAttempt: (report) => {
          pace.note(report.duration_ms);
          metrics.observeAttempt(report, clock.wallMs());
          endpoint_log.note(dispatcher.endpointHealth(), report);
        },
      },
    );
    store.paceAppends((waiting) => pace.take(waiting, dispatcher.is_busy));
    this.#dispatcher = this.#services.add(dispatcher);
    core.own_publisher.open(webhook_events);
    if (store.counts().pending > 0) await this.#awaitBacklogReadiness();
    await dispatcher.start();
  }

  /** Makes the webhook's transport. The modules for tunnels are loaded only where there are any. */
  async #makeTransport(connections: number): Promise<HttpTransport> {
    const { clock } = this.#parts;
    const { webhook_egress, webhook_guard } = this.#given;
    if (webhook_egress === 'direct') {
      return new HttpTransport(clock, connections, new SharedLookup(webhook_guard, directResolve(clock)));
    }
    const [{ Tunnels }, { tunnelled }] = await Promise.all([
      import('./tunnels.ts'),
      import('../webhook/tunnelled.ts'),
    ]);
    const tunnels = this.#services.add(new Tunnels(clock));
    this.#tunnels = tunnels;
    return new HttpTransport(clock, connections, new SharedLookup(), (secure) =>
      tunnelled(clock, tunnels.open, secure),
    );
  }

  /**
   * Delays the delivery of a backlog until the API and the outbox thread are up: outcomes in the meantime would be
   * recorded late, and a kill would then send those records twice.
   */
  async #awaitBacklogReadiness(): Promise<void> {
    const { clock, core } = this.#parts;
    const ready = Promise.all([core.api.load(), HttpTransport.load(), core.store.moved]);
    await atMost(runTime(clock), BACKLOG_WAIT_MS, ready);
  }

  async #startSupervision(): Promise<Supervisor> {
    const { clock, log, config, core, environment } = this.#parts;
    const { own_publisher: publisher } = core;
    const supervisor = new Supervisor({
      clock,
      log,
      directory: join(config.state_dir, 'processes'),
      emit: (event, key) => publisher.emit(event, key),
      environment: () => environment.current(),
      default_user: config.process_user,
      grace_ms: config.shutdown_grace_ms,
    });
    this.#supervisor = this.#services.add(supervisor);
    await supervisor.start();
    return supervisor;
  }

  /** Where the webhook is sent no file events, `watch_dir` is only checked. */
  async #startWatcher(): Promise<void> {
    const { watch_dir, watch_ignore } = this.#given;
    if (!watch_dir) return;
    const { Watcher } = await import('../watch/thread/watcher.ts');
    const { config, clock, log, core } = this.#parts;
    const ignore = [...config.watch_ignore, ...watch_ignore];
    const store = new OutboxTreeStore(core.store);
    const own_paths = ownPaths(config);
    const watcher = new Watcher({ watch_dir, ignore, own_paths, clock, log, store, is_apart: true });
    try {
      if (!core.own_publisher.takes('file.modified')) return await watcher.check();
      this.#watcher = watcher;
      await watcher.start();
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'invalid_request') throw error;
      throw new OptionError({ field: '--watch-dir', problem: error.message }, error);
    }
  }
}
