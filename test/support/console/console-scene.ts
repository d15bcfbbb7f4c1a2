import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Scope } from '../../../src/contract/tokens.ts';
import { eventually } from '../eventually.ts';
import { Client } from '../manager/manager-client.ts';
import { ManagerProgram, runManagerCommand } from '../manager-program.ts';
import { scratchFolder } from '../scratch.ts';
import { openTab, startBrowser, type Tab } from './browser.ts';

const ALL: Scope[] = ['sandboxes:write', 'webhooks:read', 'quota:read', 'usage:read'];

/** A built manager with real sandboxes, a browser, and a team. */
export interface ConsoleScene {
  url: string;
  client: Client;
  /** A page of the console at a place behind `#/`, signed in. */
  open(place?: string, options?: Parameters<typeof openTab>[3]): Promise<Tab>;
  /** A page of one who has not signed in. */
  openUnknown(): Promise<Tab>;
  token(...scopes: Scope[]): Promise<string>;
  /** Revokes the token that was made last. */
  revokeNewest(): Promise<void>;
  /** Starts the manager anew on its port. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

interface Listed {
  token_id: string;
  created_at: string;
}

/** Starts them; when the test has ended, nothing of them is left. */
export async function startConsole(...options: string[]): Promise<ConsoleScene> {
  const folder = scratchFolder();
  const data_dir = join(folder, 'data');
  const has_database = options.includes('--database');
  const at = has_database
    ? (options[options.indexOf('--database') + 1] as string)
    : `sqlite:${join(folder, 'm.db')}`;
  const begin = (listen: string) =>
    ManagerProgram.start([
      ...['--listen', listen, '--runtime', 'local', '--data-dir', data_dir],
      ...['--secret-key-file', join(folder, 'key'), '--allow-webhook-cidr', '127.0.0.0/8'],
      ...(has_database ? [] : ['--database', at]),
      ...options,
    ]);
  let manager = await begin('127.0.0.1:0');
  const { url } = manager;
  onTestFinished(() => manager.end('SIGTERM'));
  const database = ['--database', at];
  const token = (...scopes: Scope[]) =>
    runManagerCommand(
      'token',
      'create',
      '--team',
      'team_1',
      ...scopes.flatMap((each) => ['--scope', each]),
      ...database,
    );
  const own = await token(...ALL);
  const client = new Client(() => url, own);
  onTestFinished(async () => {
    for (const { id } of (await client.get('/api/v1/sandboxes')).data.sandboxes) {
      await client.call('DELETE', `/api/v1/sandboxes/${id}`);
    }
    const left = () => readdirSync(data_dir).filter((name) => !name.startsWith('.'));
    await eventually(() => expect(left()).toEqual([]), { interval: 50 });
  });
  const browser = await startBrowser();
  return {
    url,
    client,
    token,
    open: (place = '', given = {}) => openTab(browser, `${url}/console/#/${place}`, own, given),
    openUnknown: () => openTab(browser, `${url}/console/`, null),
    async revokeNewest() {
      const { tokens } = JSON.parse(await runManagerCommand('token', 'list', '--json', ...database));
      const newest = tokens.toSorted((a: Listed, b: Listed) => (a.created_at < b.created_at ? 1 : -1))[0];
      await runManagerCommand('token', 'revoke', newest.token_id, ...database);
    },
    async restart() {
      manager = await begin(new URL(url).host);
    },
    stop: () => manager.end('SIGKILL'),
  };
}
