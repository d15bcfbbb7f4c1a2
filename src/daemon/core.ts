import { rmSync } from 'node:fs';
import { BlockList, isIP, isIPv4 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import pRetry from 'p-retry';
import { type Clock, sleep } from '../base/clock.ts';
import { keepHeapSmall } from '../base/engine/heap.ts';
import type { HttpApp } from '../base/http/app.ts';
import type { Log } from '../base/log.ts';
import { OWN_WAITS } from '../base/own-waits.ts';
import type { ServiceGroup } from '../base/service.ts';
import { VERSION } from '../base/version.ts';
import type { WebhookEgress } from '../contract/control-socket.ts';
import { ApiError, OptionError } from '../contract/errors.ts';
import type { EventType } from '../contract/events.ts';
import type { WebhookRetry } from '../contract/words.ts';
import { OutboxClient } from '../outbox/sqlite/client.ts';
import { diskAnswers } from '../outbox/sqlite/files/disk-answers.ts';
import type { AddressGuard } from '../webhook/address-guard.ts';
import { directResolve } from '../webhook/lookup.ts';
import type { Resolve } from '../webhook/resolver.ts';
import { HttpTransport } from '../webhook/transport.ts';
import { LocalApi } from './api/local-api.ts';
import type { DaemonConfig } from './config.ts';
import { ControlToken } from './control-token.ts';
import type { Environment } from './environment.ts';
import type { Metrics } from './metrics.ts';
import { OutboxHealth } from './outbox-health.ts';
import { Publisher } from './publisher.ts';
import { StartGate, startingError } from './start-gate.ts';

/** A commit in progress for longer than this makes the daemon not ready. */
const SLOW_COMMIT_MS = 2_000;
/** The delay before a disk that refused is tried again. */
const DISK_RETRY_MS = 1_000;
/** Wildcard addresses: as a destination each means this machine. */
const UNSPECIFIED = ['0.0.0.0', '::'];

/** The identity and settings that a sandbox is given once: by options at start, or by `POST /sandbox/init`. */
export interface Initialisation {
  sandbox_id: string;
  team_id: string;
  webhook_url: string | null;
  /** Empty: requests are not signed. */
  webhook_secret: string;
  /** The addresses that the webhook may lead to; null if the operator of the daemon has chosen it. */
  webhook_guard: AddressGuard | null;
  /** `manager`: its connections are made over tunnels that the manager opens, which checks the addresses. */
  webhook_egress: WebhookEgress;
  /** The kinds that the webhook is sent; null: all of them. */
  webhook_events: EventType[] | null;
  webhook_retry: WebhookRetry;
  watch_dir: string | null;
  /** Globs, in addition to those of `--watch-ignore`. */
  watch_ignore: string[];
  /** 64 lowercase hex digits that authenticate the outbox's records; kept only in memory. */
  record_key: string | null;
}

/** What a core is made of. */
export interface CoreParts {
  config: DaemonConfig;
  log: Log;
  clock: Clock;
  metrics: Metrics;
  environment: Environment;
  /** Receives what is started, and stops it. */
  services: ServiceGroup;
  /** Creates the local API; called with its first request. */
  createApp: (prepare: (app: HttpApp) => void) => Promise<HttpApp>;
  /** Called when the outbox can no longer be written and the daemon must end. */
  onFault: () => void;
}

/**
 * What a daemon has before its sandbox has an identity: local API, control token, environment, outbox, publisher. It
 * listens first, so that it can answer while a disk in trouble delays the rest; then it opens the outbox, and makes its
 * address known; `adopt` gives the outbox its owner.
 */
export class DaemonCore {
  readonly api: LocalApi;
  readonly token: ControlToken;
  /** Holds requests until the sandbox has started. */
  readonly gate: StartGate;
  readonly #parts: CoreParts;
  readonly #health: OutboxHealth;
  readonly #disk: DiskWait;
  /** Damage found outside the outbox, one line each. */
  readonly #damages: string[] = [];
  #identity = { sandbox_id: '', team_id: '' };
  #store: OutboxClient | null = null;
  #publisher: Publisher | null = null;

  constructor(parts: CoreParts) {
    const { config, log, clock, metrics, createApp } = parts;
    this.#parts = parts;
    const probe = () => void this.#store?.append({ drafts: [] });
    this.#health = new OutboxHealth(log, metrics, clock, probe);
    this.gate = new StartGate(clock);
    this.token = new ControlToken(config.control_token_file, config.state_dir, clock);
    this.#disk = new DiskWait(clock, (reason) => this.#reportDiskTrouble(reason));
    const { host, port } = config;
    this.api = new LocalApi(this, { host, port, requests: metrics.requests, log, createApp });
  }

  /** The outbox. Throws `outbox_unavailable` until it is open. */
  get store(): OutboxClient {
    if (!this.#store) throw startingError();
    return this.#store;
  }

  /** The publisher of the daemon's own events. Throws `outbox_unavailable` until the outbox is open. */
  get own_publisher(): Publisher {
    if (!this.#publisher) throw startingError();
    return this.#publisher;
  }

  /** Where clients publish. Throws `outbox_unavailable` until the daemon has started. */
  get publisher(): Publisher {
    if (!this.#publisher || !this.gate.is_open || this.#disk.is_waiting) throw startingError();
    return this.#publisher;
  }

  /** Whether the start waits for a disk that refuses. */
  get is_waiting_for_disk(): boolean {
    return this.#disk.is_waiting;
  }

  /** Whose sandbox it is; empty until `adopt`. */
  get identity(): { sandbox_id: string; team_id: string } {
    return this.#identity;
  }

  /** Why the outbox cannot be written; null if it can. */
  get trouble(): string | null {
    const is_slow = (this.#store?.waitingMs() ?? 0) > SLOW_COMMIT_MS;
    return this.#health.trouble ?? (is_slow ? 'the disk does not answer' : null);
  }

  /** What was found damaged or missing since the start, one line each. */
  get damages(): readonly string[] {
    return [...this.#damages, ...this.#health.damages];
  }

  /** Listens, opens the outbox, and reads token and environment. Throws StartError. */
  async start(): Promise<void> {
    const { config, clock, services } = this.#parts;
    await services.start(this.api);
    const begins_here = await diskAnswers(config.state_dir, clock);
    const store = await this.#disk.untilAccepted(() => this.#openOutbox(begins_here));
    services.add({ stop: () => store.close() });
    // Once more, because its requests use the outbox: they end before it closes.
    services.add(this.api);
    this.#store = store;
    this.#publisher = new Publisher(store, clock);
    await this.#publishAddress();
  }

  /** Loads what an init will need: a daemon of a warm pool has time now, and none then. */
  async preload(): Promise<void> {
    await Promise.all([this.api.load(), HttpTransport.load()]);
  }

  /** Gives the outbox its owner, and removes what another sandbox has left. Throws StartError. */
  async adopt({
    sandbox_id,
    team_id,
    webhook_url,
    webhook_egress,
    webhook_secret,
    record_key,
  }: Initialisation): Promise<void> {
    const { store } = this;
    // Through the manager no URL leads back here.
    if (webhook_egress === 'direct') await this.#checkWebhook(webhook_url);
    const found = store.found_sandbox_id;
    // Must precede the adoption: after a crash in between, the parent's token must not be left in place.
    if (found !== null && found !== sandbox_id) this.#forgetOtherSandbox();
    const owner = { sandbox_id, team_id, secret: webhook_secret, record_key };
    this.#health.reportAdoption(await this.#disk.untilAccepted(() => store.adopt(owner)));
    this.#health.observe(null);
    this.#identity = { sandbox_id, team_id };
  }

  /** Ends all waiting, because the daemon ends: for the disk, and of requests for the start. */
  release(): void {
    this.#disk.cancel();
    this.gate.release();
  }

  /**
   * Opens the outbox in the state directory. `begins_here`: in this thread, until it requires a thread of its own. Throws
   * `outbox_unavailable` if the disk refuses, and StartError if the outbox cannot be used.
   */
  async #openOutbox(begins_here: boolean): Promise<OutboxClient> {
    const { config, clock, log, metrics } = this.#parts;
    const { state_dir } = config;
    const limits = {
      max_bytes: config.outbox_max_bytes,
      max_records: config.outbox_max_records,
      window_ms: config.delivery_window_ms,
    };
    const onFault = (error: Error) => {
      log.fatal({ reason: error.message }, 'the outbox writer failed');
      this.#parts.onFault();
    };
    const store = await OutboxClient.open({ state_dir, limits }, clock, onFault, begins_here);
    store.onCommitMeasured((report) => {
      metrics.observeCommit(report);
      if (store.is_in_thread) keepHeapSmall();
      this.#health.observe(report.trouble);
      if (report.dropped > 0) this.#health.reportDropped();
      this.token.checkFile();
    });
    store.onMended((mended) => {
      this.#health.reportRepair(mended);
      if (mended.how === 'restored') this.token.restore();
    });
    return store;
  }

  async #reportDiskTrouble(reason: string): Promise<void> {
    this.#health.observe(reason);
    this.gate.release();
    await this.#publishAddress();
  }

  /** Reads token and environment and makes the API's address known, as soon as the API can answer anything. */
  async #publishAddress(): Promise<void> {
    const { config, environment, log } = this.#parts;
    const { url } = this.api;
    if (this.token.is_read) return;
    this.token.read();
    this.#loadEnvironment();
    environment.add({ SANDBOXD_URL: url });
    if (config.control_socket) await this.api.listenOnSocket(config.control_socket);
    log.info({ url, version: VERSION }, 'listening');
  }

  #loadEnvironment(): void {
    const { environment, log } = this.#parts;
    const set_aside = environment.load();
    if (set_aside === null) return;
    log.error({ set_aside }, 'environment.json is damaged and was set aside: its variables are missing');
    this.#damages.push(`a damaged environment.json was set aside at ${set_aside}: its variables are missing`);
  }

  async #checkWebhook(webhook_url: string | null): Promise<void> {
    if (!webhook_url) return;
    const { addresses, port } = this.api.listeners;
    if (await isOwnAddress(new URL(webhook_url), addresses, port, directResolve(this.#parts.clock))) {
      throw new OptionError({
        field: '--webhook-url',
        problem: "is this daemon's own API: each delivery would cause another event",
      });
    }
  }

  /** Removes what a fork inherits from its parent: token, environment and processes. */
  #forgetOtherSandbox(): void {
    const { config, environment } = this.#parts;
    this.token.renew();
    environment.clear();
    rmSync(join(config.state_dir, 'processes'), { recursive: true, force: true });
  }
}

/** Retries steps of the start that a disk in trouble refuses. */
export class DiskWait {
  readonly #clock: Clock;
  readonly #on_refused: (reason: string) => Promise<void>;
  #is_waiting = false;
  #is_cancelled = false;

  /** `onRefused` is called after each refusal, while `is_waiting`. */
  constructor(clock: Clock, onRefused: (reason: string) => Promise<void>) {
    this.#clock = clock;
    this.#on_refused = onRefused;
  }

  /** Whether a step waits for the disk. */
  get is_waiting(): boolean {
    return this.#is_waiting;
  }

  /** Retries no further: the next refusal is thrown. */
  cancel(): void {
    this.#is_cancelled = true;
  }

  /** Repeats `work` while it throws `outbox_unavailable`, until it succeeds or `cancel` is called. */
  async untilAccepted<Result>(work: () => Promise<Result>): Promise<Result> {
    const onFailedAttempt = async ({ error }: { error: Error }) => {
      const may_pass = error instanceof ApiError && error.code === 'outbox_unavailable';
      if (!may_pass || this.#is_cancelled) throw error;
      const { reason } = (error.details ?? {}) as { reason?: string };
      this.#is_waiting = true;
      await this.#on_refused(reason ?? error.message);
      await sleep(this.#clock, DISK_RETRY_MS);
    };
    const result = await pRetry(work, { ...OWN_WAITS, onFailedAttempt });
    this.#is_waiting = false;
    return result;
  }
}

/**
 * Whether a URL leads to one of the daemon's own listeners, in any spelling: each delivery there would cause the next
 * event. `bound` and `port` are the listeners'. A name that does not resolve now is not own. Source: contract section 3.
 */
export async function isOwnAddress(
  url: URL,
  bound: string[],
  port: number,
  resolve: Resolve,
): Promise<boolean> {
  const url_port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  if (url_port !== port) return false;
  const name = url.hostname.replace(/^\[|\]$|\.$/g, '');
  if (name === 'localhost' || name.endsWith('.localhost')) return true;
  const family = isIP(name);
  const resolved = family ? [{ address: name, family }] : await resolve(name).catch(() => []);
  const own = ownAddresses(bound);
  return resolved.some(({ address, family }) => own.check(address, family === 6 ? 'ipv6' : 'ipv4'));
}

/** An IPv4-mapped address is checked as the IPv4 address that it carries. */
function ownAddresses(bound: string[]): BlockList {
  const own = new BlockList();
  const add = (address: string) => own.addAddress(address, isIPv4(address) ? 'ipv4' : 'ipv6');
  for (const address of [...UNSPECIFIED, ...bound]) add(address);
  if (bound.some((each) => UNSPECIFIED.includes(each))) {
    for (const { address } of Object.values(networkInterfaces()).flatMap((all) => all ?? [])) add(address);
    own.addSubnet('127.0.0.0', 8);
  }
  return own;
}
