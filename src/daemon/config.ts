import { readFileSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import type { LogLevel } from '../base/log.ts';
import { OptionError, StartError } from '../contract/errors.ts';
import type { RestartPolicy } from '../contract/processes.ts';

/** A daemon's configuration: parsed once, validated and frozen. Source: contract section 4, the options. */
export interface DaemonConfig {
  readonly webhook_url: string | null;
  /** If empty, requests are not signed. */
  readonly webhook_secret: string;
  readonly watch_dir: string | null;
  readonly watch_ignore: string[];
  readonly sandbox_id: string;
  readonly team_id: string;
  readonly host: string;
  readonly port: number;
  readonly control_token_file: string;
  readonly control_socket: string | null;
  readonly state_dir: string;
  readonly restart: RestartPolicy;
  readonly keep_alive: boolean;
  readonly process_user: string | null;
  readonly attempt_timeout_ms: number;
  readonly delivery_window_ms: number;
  readonly delivery_concurrency: number;
  readonly outbox_max_bytes: number;
  readonly outbox_max_records: number;
  readonly shutdown_grace_ms: number;
  readonly await_init: boolean;
  readonly log_level: LogLevel;
  /** The main command and its arguments; empty if there is none. */
  readonly command: string[];
}

/** The options as the command line parser returns them: numbers parsed, names in camel case. */
export interface SandboxdOptions {
  webhookUrl?: string;
  webhookSecret?: string;
  webhookSecretFile?: string;
  watchDir?: string;
  watchIgnore?: string[];
  sandboxId?: string;
  teamId?: string;
  host: string;
  port: number;
  controlTokenFile?: string;
  controlSocket?: string;
  stateDir: string;
  restart: RestartPolicy;
  keepAlive?: boolean;
  processUser?: string;
  attemptTimeoutMs: number;
  deliveryWindowMs: number;
  deliveryConcurrency: number;
  outboxMaxBytes: number;
  outboxMaxRecords: number;
  shutdownGraceMs: number;
  awaitInit?: boolean;
  logLevel: LogLevel;
}

const ID_MAX_LENGTH = 256;
/** Visible ASCII: ids are sent in a header and in the path of URLs. */
const ID = /^[\x21-\x7e]*$/;
const PLATFORM_SWITCH = 'NODE_TLS_REJECT_UNAUTHORIZED';

/**
 * Builds the configuration from the options, the main command and the secret of the environment. Throws StartError that
 * names the option (exit code 2) if a value is invalid or options contradict each other.
 */
export function daemonConfig(
  options: SandboxdOptions,
  command: string[],
  env_secret: string | undefined,
): DaemonConfig {
  if (process.env[PLATFORM_SWITCH] === '0') {
    throw new StartError(
      `${PLATFORM_SWITCH}=0 would turn off the check of the endpoint's certificate: remove it from the environment`,
    );
  }
  const state_dir = resolve(options.stateDir);
  const config: DaemonConfig = {
    webhook_url: options.webhookUrl ? webhookUrl(options.webhookUrl, '--webhook-url') : null,
    webhook_secret: secretOf(options, env_secret),
    watch_dir: options.watchDir ? watchDir(options.watchDir, '--watch-dir') : null,
    watch_ignore: options.watchIgnore ?? [],
    sandbox_id: identifier(options.sandboxId ?? '', '--sandbox-id'),
    team_id: identifier(options.teamId ?? '', '--team-id'),
    host: options.host,
    port: options.port,
    control_token_file: resolve(options.controlTokenFile ?? `${state_dir}/control-token`),
    control_socket: options.controlSocket ? resolve(options.controlSocket) : null,
    state_dir,
    restart: options.restart,
    keep_alive: options.keepAlive ?? false,
    process_user: options.processUser ?? null,
    attempt_timeout_ms: options.attemptTimeoutMs,
    delivery_window_ms: options.deliveryWindowMs,
    delivery_concurrency: options.deliveryConcurrency,
    outbox_max_bytes: options.outboxMaxBytes,
    outbox_max_records: options.outboxMaxRecords,
    shutdown_grace_ms: options.shutdownGraceMs,
    await_init: options.awaitInit ?? false,
    log_level: options.logLevel,
    command,
  };
  checkTogether(config);
  return Object.freeze(config);
}

function checkTogether(config: DaemonConfig): void {
  if (config.await_init) {
    const given = [
      ['--webhook-url', config.webhook_url],
      ['--webhook-secret', config.webhook_secret],
      ['--watch-dir', config.watch_dir],
      ['--sandbox-id', config.sandbox_id],
      ['--team-id', config.team_id],
    ].find(([, value]) => value);
    if (given)
      throw badOption(`${given[0]}`, 'is not accepted with --await-init: it is given by POST /sandbox/init');
  }
  if (config.command.length === 0 && config.keep_alive) {
    throw badOption('--keep-alive', 'requires a main command (-- command …)');
  }
}

/** The daemon's own files and directories: neither file operations nor the watch reach them. */
export function ownPaths(
  config: Pick<DaemonConfig, 'state_dir' | 'control_token_file' | 'control_socket'>,
): string[] {
  const { state_dir, control_token_file, control_socket } = config;
  return [state_dir, control_token_file, ...(control_socket === null ? [] : [control_socket])];
}

/** What is configured and has no effect, a line for each: that is rarely meant. Pure. */
export function optionsWithoutEffect(config: DaemonConfig): string[] {
  if (config.webhook_url !== null) return [];
  const lines: string[] = [];
  if (config.webhook_secret !== '') {
    lines.push('--webhook-secret has no effect without --webhook-url: nothing is delivered');
  }
  if (config.watch_dir !== null) {
    lines.push('--watch-dir has no effect without --webhook-url: changes are not reported');
  }
  return lines;
}

/** The secret from its file, else from the command line or the environment; empty if there is none. */
function secretOf(options: SandboxdOptions, env_secret: string | undefined): string {
  const { webhookSecret, webhookSecretFile } = options;
  if (webhookSecretFile === undefined) return webhookSecret ?? env_secret ?? '';
  if (webhookSecret !== undefined) {
    throw badOption('--webhook-secret-file', 'is not accepted together with --webhook-secret');
  }
  try {
    return readFileSync(webhookSecretFile, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw badOption('--webhook-secret-file', `cannot be read: ${(error as Error).message}`);
  }
}

/** Returns a webhook's URL, normalised. Throws StartError that names `option` unless it is http(s) without credentials. */
export function webhookUrl(text: string, option: string): string {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) throw badOption(option, 'must be an http or https URL');
  if (url.username || url.password) throw badOption(option, 'must not contain credentials');
  url.hash = '';
  return url.href;
}

/** Returns the path of a folder to watch. Throws StartError that names `option` if it is not absolute. */
export function watchDir(path: string, option: string): string {
  if (!isAbsolute(path)) throw badOption(option, 'must be an absolute path');
  return resolve(path);
}

/** Returns a sandbox or team id. Throws StartError that names `option` if it is too long or not visible ASCII. */
export function identifier(id: string, option: string): string {
  if (id.length > ID_MAX_LENGTH || !ID.test(id)) {
    throw badOption(option, `must be up to ${ID_MAX_LENGTH} visible ASCII characters`);
  }
  return id;
}

function badOption(field: string, problem: string): OptionError {
  return new OptionError({ field, problem });
}
