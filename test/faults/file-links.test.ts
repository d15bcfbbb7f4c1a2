import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { LocalDaemon } from '../support/daemon/local-daemon.ts';
import type { SwapperReport, SwapperSettings } from '../support/files/swapper.ts';
import { IS_ROOT } from '../support/rights.ts';
import { scratchFolder } from '../support/scratch.ts';

const PROGRAM = resolve(import.meta.dirname, '../support/files/swapper.ts');
const ATTACKERS = 8;
const REQUESTS = 4_000;
const TOGETHER = 8;
const NOBODY = 65_534;
const CANARY = 'canary-of-root';

/** Every name in a directory, with its mode and content. */
function stateOf(directory: string): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(directory, { recursive: true }).map(String).sort()) {
    const path = join(directory, name);
    const stat = lstatSync(path);
    hash.update(`${name}\0${stat.mode}\0${stat.uid}\0${stat.isFile() ? readFileSync(path, 'latin1') : ''}\0`);
  }
  return hash.digest('hex');
}

/** Attackers that are at it until they are asked what they did. */
function startAttackers(settings: Omit<SwapperSettings, 'id'>) {
  const attackers = Array.from({ length: ATTACKERS }, (_, id) => {
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify({ ...settings, id })], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    return { child, said: text(child.stdout) };
  });
  return async () => {
    for (const { child } of attackers) child.stdin.end();
    const said = await Promise.all(attackers.map((each) => each.said));
    return said.map((lines): SwapperReport => JSON.parse(lines.trim().split('\n').at(-1) ?? ''));
  };
}

it.runIf(IS_ROOT)(
  'attackers that swap links, directories and pipes during requests reach neither the daemon nor what is not theirs (root only)',
  { timeout: 600_000 },
  async () => {
    const daemon = await LocalDaemon.start();
    const { state_dir } = daemon.daemon.config;
    const token = readFileSync(join(state_dir, 'control-token'), 'utf8').trim();
    const folder = scratchFolder();
    chmodSync(folder, 0o755);
    const [home, secret] = [join(folder, 'home'), join(folder, 'secret')];
    mkdirSync(join(secret, 'sub'), { recursive: true });
    chmodSync(secret, 0o700);
    for (const name of ['control-token', 'f', 'sub/f']) writeFileSync(join(secret, name), CANARY);
    for (const name of ['', 'd', 'e', 'out']) mkdirSync(join(home, name));
    for (const name of ['d/f', 'd/control-token', 'e/f', 'e/control-token'])
      writeFileSync(join(home, name), 'mine');
    execFileSync('mkfifo', [join(home, 'pipe')]);
    symlinkSync(secret, join(home, 'l'));
    symlinkSync(join(home, 'd'), join(home, 'x'));
    symlinkSync(join(secret, 'f'), join(home, 'to-file'));
    execFileSync('chown', ['-Rh', `${NOBODY}:${NOBODY}`, home]);
    const before = [stateOf(secret), stateOf(join(state_dir, 'processes'))];
    const archive = execFileSync('tar', ['-c', '-C', join(home, 'e'), 'f', 'control-token']);
    const targets = [join(home, 'd'), state_dir, secret, join(home, 'e')];
    const stop = startAttackers({ home, uid: NOBODY, targets, canaries: [CANARY, token] });

    const at = (path: string, more = '') => `path=${encodeURIComponent(join(home, path))}${more}`;
    const as = '&user=nobody';
    const two = (verb: string, source: string, destination: string) =>
      daemon.ask(`/files/${verb}?user=nobody`, {
        json: { source: join(home, source), destination: join(home, destination), overwrite: true },
      });
    const requests: ((i: number) => ReturnType<LocalDaemon['ask']>)[] = [
      () => daemon.ask(`/files?${at('x/control-token', as)}`),
      () => daemon.ask(`/files?${at('x/control-token', as)}`, { method: 'PUT', body: 'mine' }),
      () => daemon.ask(`/files?${at('d/f', as)}`),
      () => daemon.ask(`/files?${at('d/f', as)}`, { method: 'PUT', body: 'mine' }),
      // The daemon's own account may reach all but the daemon.
      () => daemon.ask(`/files?${at('x/control-token')}`),
      () => daemon.ask(`/files/archive?${at('x', as)}`),
      () => daemon.ask(`/files/archive?${at('x', as)}`, { method: 'PUT', body: archive }),
      () => daemon.ask(`/files/list?${at('d', `&depth=3${as}`)}`),
      (i) => two('copy', 'x', `out/copy-${i % 16}`),
      (i) => two('copy', 'x/control-token', `out/file-${i % 16}`),
      (i) => two('move', `out/file-${i % 16}`, 'x/moved'),
      (i) => daemon.ask(`/files?${at(`x/new-${i % 16}`, as)}`, { method: 'PUT', body: 'mine' }),
      (i) =>
        daemon.ask(`/files?${at(`x/sub/new-${i % 16}`, `&mkdir=true&recursive=true${as}`)}`, {
          method: 'POST',
        }),
      () => daemon.ask(`/files?${at('x/sub', `&recursive=true${as}`)}`, { method: 'DELETE' }),
      (i) => daemon.ask(`/files?${at(`out/copy-${i % 16}`, `&recursive=true${as}`)}`, { method: 'DELETE' }),
      () => daemon.ask(`/files/stat?${at('x/control-token', as)}`),
    ];
    const answers = new Map<number, number>();
    const leaks: string[] = [];
    let sent = 0;
    const work = async () => {
      while (sent < REQUESTS) {
        const i = sent++;
        const kind = i % requests.length;
        const answer = await (requests[kind] as (typeof requests)[number])(i).catch(() => null);
        answers.set(answer?.status ?? 0, (answers.get(answer?.status ?? 0) ?? 0) + 1);
        const is_secret = kind !== 4 && answer?.text.includes(CANARY);
        if (answer?.text.includes(token) || is_secret) leaks.push(`${kind}: ${answer?.text.slice(0, 200)}`);
      }
    };
    await Promise.all(Array.from({ length: TOGETHER }, work));
    const reports = await stop();

    expect(leaks).toEqual([]);
    expect(reports.flatMap(({ seen }) => seen)).toEqual([]);
    expect([stateOf(secret), stateOf(join(state_dir, 'processes'))]).toEqual(before);
    expect(readFileSync(join(state_dir, 'control-token'), 'utf8').trim()).toBe(token);
    expect(readdirSync(state_dir).filter((name) => /^(f|moved|new-.*|sub)$/.test(name))).toEqual([]);
    // They were really at it, and requests went both ways.
    for (const { flips, exchanges } of reports) expect(flips + exchanges).toBeGreaterThan(REQUESTS / 100);
    expect(reports.reduce((sum, { exchanges }) => sum + exchanges, 0)).toBeGreaterThan(REQUESTS / 10);
    for (const status of [200, 403]) expect(answers.get(status) ?? 0).toBeGreaterThan(REQUESTS / 50);
    expect(answers.get(500) ?? 0).toBe(0);
    rmSync(home, { recursive: true });
    if (process.env.FILE_LINKS_SHOWN)
      process.stdout.write(`${JSON.stringify({ reports, answers: [...answers] })}\n`);
  },
);
