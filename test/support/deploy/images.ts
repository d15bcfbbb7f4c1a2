import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { minbase } from '../build/minbase.ts';
import { eventually } from '../eventually.ts';
import { IS_ROOT } from '../rights.ts';

const run = promisify(execFile);
const FILES = fileURLToPath(new URL('../../../fixtures/deploy', import.meta.url));
const BUILD_MS = 900_000;
const START = { timeout: 120_000, interval: 100 };

/** What an image says of itself. */
export interface ImageConfig {
  User: string;
  Env: string[];
  Entrypoint: string[];
  Cmd: string[] | null;
  WorkingDir: string;
  Healthcheck: { Test: string[] };
}

/** Why no images can be built and run here; null if they can. */
export function whyNoImages(): string | null {
  if (process.env.SANDBOXD_TEST_IMAGES !== 'all') return 'run `npm run test:images`';
  if (!IS_ROOT) return 'it takes root';
  if (spawnSync('buildah', ['--version']).status !== 0) return 'buildah is missing';
  if (runtime() === null) return 'runc is missing, also in the folder of KUBE_BIN';
  return minbase() === null ? 'there is no base image' : null;
}

function runtime(): string | null {
  const candidates = ['runc', ...(process.env.KUBE_BIN ? [join(process.env.KUBE_BIN, 'runc')] : [])];
  return candidates.find((path) => spawnSync(path, ['--version']).status === 0) ?? null;
}

/** A store of images, with a Debian made by debootstrap in the place of `debian:12-slim`: no registry is asked. */
export class ImageStore {
  readonly #folder = mkdtempSync(join(tmpdir(), 'sandboxd-test-images-'));

  static async make(): Promise<ImageStore> {
    const store = new ImageStore();
    const container = await store.#buildah('from', 'scratch');
    await store.#buildah('add', '--quiet', container, minbase() as string, '/');
    await store.#buildah('commit', '--quiet', '--rm', container, 'docker.io/library/debian:12-slim');
    return store;
  }

  async #buildah(...args: string[]): Promise<string> {
    const { stdout } = await run('buildah', [...this.#options, ...args], {
      timeout: BUILD_MS,
      maxBuffer: 2 ** 26,
    });
    return stdout.trim();
  }

  get #options(): string[] {
    const [images, running] = ['images', 'running'].map((name) => join(this.#folder, name));
    return ['--root', images as string, '--runroot', running as string, '--storage-driver', 'vfs'];
  }

  /** Builds a file of `fixtures/deploy`; resolves with what the image says of itself. */
  async build(file: string, context: string, tag: string): Promise<ImageConfig> {
    const options = ['--isolation', 'chroot', '--format', 'docker', '--pull-never', '--quiet'];
    await this.#buildah('bud', ...options, '--file', join(FILES, file), '--tag', tag, context);
    return JSON.parse(await this.#buildah('inspect', '--type', 'image', tag)).Docker.config;
  }

  /** Runs an image as it says of itself, with a loopback interface alone; `args` in place of its own. */
  async start(tag: string, { Entrypoint, Cmd, Env }: ImageConfig, args?: string[]): Promise<Container> {
    const container = await this.#buildah('from', '--pull-never', tag);
    const mark = `TEST_MARK=${randomUUID()}`;
    const command = [...Entrypoint, ...(args ?? Cmd ?? [])];
    // A runtime gives every container this file; buildah gives none where there is no network.
    const hosts = join(this.#folder, 'hosts');
    writeFileSync(hosts, '127.0.0.1 localhost\n');
    const isolation = ['--isolation', 'oci', '--runtime', runtime() as string, '--network', 'none'];
    isolation.push('--volume', `${hosts}:/etc/hosts:ro`);
    const child = spawn(
      'buildah',
      [...this.#options, 'run', ...isolation, '--env', mark, container, '--', ...command],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    return Container.of(child, mark, Env);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** A running container. */
export class Container {
  readonly #child: ChildProcess;
  readonly #env: string[];
  readonly #ended: Promise<unknown[]>;
  /** What it has written so far. */
  log = '';
  /** Its first process, as this machine sees it. */
  init = 0;

  private constructor(child: ChildProcess, env: string[]) {
    this.#child = child;
    this.#env = env;
    this.#ended = once(child, 'exit');
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.log += text;
      });
  }

  static async of(child: ChildProcess, mark: string, env: string[]): Promise<Container> {
    const container = new Container(child, env);
    container.init = await eventually(() => {
      if (child.exitCode !== null) throw new Error(container.log);
      const init = readdirSync('/proc').find((pid) => isFirstOf(pid, mark));
      if (init === undefined) throw new Error(`the container has not begun: ${container.log}`);
      return Number(init);
    }, START);
    return container;
  }

  /** Runs a command in it as the image's user; rejects where it fails. */
  async exec(...command: string[]): Promise<string> {
    const inside = ['--target', String(this.init), '--all', '--setuid', '1000', '--setgid', '1000'];
    const { stdout } = await run('nsenter', [...inside, '--', 'env', '-i', ...this.#env, ...command]);
    return stdout;
  }

  /** Starts a command in it, which ends with it. */
  follow(...command: string[]): ChildProcess {
    const inside = ['--target', String(this.init), '--all', '--setuid', '1000', '--setgid', '1000'];
    return spawn('nsenter', [...inside, '--', 'env', '-i', ...this.#env, ...command], { stdio: 'ignore' });
  }

  /** A line of `/proc/<pid>/status` of its first process. */
  status(key: string): string {
    const status = readFileSync(`/proc/${this.init}/status`, 'utf8');
    return new RegExp(`^${key}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '';
  }

  /** Asks it to end, as every runtime does; resolves with the exit code. */
  async stop(): Promise<number | null> {
    if (this.#child.exitCode === null) process.kill(this.init, 'SIGTERM');
    await this.#ended;
    return this.#child.exitCode;
  }
}

/** Is it the first process of a container that was started with this variable? */
function isFirstOf(pid: string, mark: string): boolean {
  if (!/^\d+$/.test(pid)) return false;
  try {
    if (!readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(mark)) return false;
    return /^NSpid:\t\d+\t(?:\d+\t)*1$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
