import { readFileSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import type { OptionValues } from '../base/options.ts';
import { OptionError, StartError } from '../contract/errors.ts';
import type { SANDBOXD_OPTIONS } from './options.ts';

/** The options as the command line and the environment give them. */
export type SandboxdOptions = OptionValues<typeof SANDBOXD_OPTIONS>;

/** A daemon's configuration: parsed once, validated and frozen. Source: contract section 4, the options. */
export interface DaemonConfig extends Omit<SandboxdOptions, 'webhook_secret_file'> {
  /** If empty, requests are not signed. */
  readonly webhook_secret: string;
  readonly sandbox_id: string;
  readonly team_id: string;
  readonly control_token_file: string;
  /** The main command and its arguments; empty if there is none. */
  readonly command: string[];
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
  given: SandboxdOptions,
  command: string[],
  env_secret: string | undefined,
): DaemonConfig {
  if (process.env[PLATFORM_SWITCH] === '0') {
    throw new StartError(
      `${PLATFORM_SWITCH}=0 would turn off the check of the endpoint's certificate: remove it from the environment`,
    );
  }
  const { webhook_secret_file, ...options } = given;
  const { webhook_url, webhook_secret, watch_dir, control_token_file, control_socket } = options;
  const state_dir = resolve(options.state_dir);
  const config: DaemonConfig = {
    ...options,
    webhook_url: webhook_url ? webhookUrl(webhook_url, '--webhook-url') : null,
    webhook_secret: secretOf(webhook_secret, webhook_secret_file, env_secret),
    watch_dir: watch_dir ? watchDir(watch_dir, '--watch-dir') : null,
    sandbox_id: identifier(options.sandbox_id ?? '', '--sandbox-id'),
    team_id: identifier(options.team_id ?? '', '--team-id'),
    control_token_file: resolve(control_token_file ?? `${state_dir}/control-token`),
    control_socket: control_socket ? resolve(control_socket) : null,
    state_dir,
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
      ['--webhook-retry', config.webhook_retry !== 'transient'],
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
function secretOf(secret: string | null, file: string | null, env_secret: string | undefined): string {
  if (file === null) return secret ?? env_secret ?? '';
  if (secret !== null)
    throw badOption('--webhook-secret-file', 'is not accepted together with --webhook-secret');
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
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
