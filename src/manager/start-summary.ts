import { VERSION } from '../base/version.ts';
import type { NetworkState } from '../contract/network.ts';
import type { QuotaPolicy } from '../contract/quotas.ts';
import type { SandboxNetworks } from '../runtime/networks/sandbox-networks.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { ManagerConfig } from './config/config.ts';
import { configuredQuotas } from './quotas/quota-config.ts';

/** What a start knows. */
export interface StartFacts {
  config: ManagerConfig;
  /** Where the API listens. */
  url: string;
  /** Started. */
  runtime: Pick<Runtime, 'summary' | 'runs_sandboxes' | 'node' | 'limitations'> & {
    networks: Pick<SandboxNetworks, 'state'>;
  };
  /** The path of this program. */
  program: string;
  /** Whether there is a token already. */
  has_tokens: boolean;
}

/**
 * The text of the first start: where everything is, and, until there is a token, the commands that lead to the first
 * sandbox. Holds no secret. Source: contract section 7, below the options.
 */
export function startSummary({ config, url, runtime, program, has_tokens }: StartFacts): string {
  const { database, secret_key_file, data_dir } = config;
  const { summary, runs_sandboxes, node, networks } = runtime;
  const facts: [string, string][] = [
    ...(config.console ? [['console', `${url}/console/`] as [string, string]] : []),
    ['database', withoutPassword(database)],
    ['key file', `${secret_key_file} (keep it: what it seals cannot be read without it)`],
    ...(node === null ? [] : [['data', data_dir] as [string, string]]),
    ['runtime', `${config.runtime}: ${summary}`],
    ...runtime.limitations().map((phrase): [string, string] => ['', phrase]),
    ...(runs_sandboxes ? [['network', networkText(networks.state())] as [string, string]] : []),
    ['quotas', quotasText(config)],
  ];
  const lines = facts.map(([name, text]) => `  ${name.padEnd(10)}${text}`);
  return `
sandbox-manager ${VERSION} listens on ${url}

${lines.join('\n')}
${has_tokens ? '' : firstCommands(config.database, runs_sandboxes, url, program)}
`;
}

function firstCommands(database: string, runs_sandboxes: boolean, url: string, program: string): string {
  // A PostgreSQL URL with its password comes from the environment or the file, for this command as well.
  const where = database.startsWith('sqlite:') ? ` --database ${quoted(database)}` : '';
  const request = (path: string, body: string) =>
    `  curl -s ${quoted(`${url}/api/v1${path}`)} -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '${body}'`;
  const claim = [
    `  TOKEN=$(${quoted(program)} token create --team team_1 --scope sandboxes:write${where})`,
    request('/sandboxes', '{}'),
  ];
  const run = request('/sandboxes/SANDBOX_ID/processes?wait_ms=60000', '{"shell":"echo hello"}');
  const lines = runs_sandboxes ? [...claim, '', 'and a command in it:', '', run] : claim;
  return `\nIn another terminal, a token and the first sandbox:\n\n${lines.join('\n')}\n`;
}

function withoutPassword(database: string): string {
  if (database.startsWith('sqlite:')) return database;
  const { protocol, host, pathname } = new URL(database);
  return `${protocol}//${host}${pathname}`;
}

function networkText({ mode, reason }: NetworkState): string {
  return reason === null ? mode : `${mode}: ${reason}`;
}

function quotasText({ quotas }: ManagerConfig): string {
  const { listed, legacy } = configuredQuotas(quotas);
  const policies = [...(listed ?? []), ...legacy];
  return policies.map(quotaText).join('; ') || 'unlimited (default_team_quotas in the file of --config)';
}

function quotaText({ dimension, limit_value, interval_ms, burst_value }: QuotaPolicy): string {
  if (interval_ms === null) return `${dimension} ${limit_value}`;
  return `${dimension} ${limit_value} every ${interval_ms} ms, at most ${burst_value} at once`;
}

/** A word as a shell reads it. */
function quoted(word: string): string {
  return /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
