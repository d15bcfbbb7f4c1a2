import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { minbase } from '../build/minbase.ts';
import { eventually } from '../eventually.ts';
import { IS_ROOT } from '../rights.ts';
import { missingPrograms, succeeds } from '../run-sync.ts';
import { RunningProgram } from '../running-program.ts';

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
  if (missingPrograms(['buildah']).length > 0) return 'buildah is missing';
  if (runtime() === null) return 'runc is missing, also in the folder of KUBE_BIN';
  return minbase() === null ? 'there is no base image' : null;
}

function runtime(): string | null {
  const candidates = ['runc', ...(process.env.KUBE_BIN ? [join(process.env.KUBE_BIN, 'runc')] : [])];
  return candidates.find((path) => succeeds(path, '--version')) ?? null;
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
    const { stdout } = await execa('buildah', [...this.#options, ...args], { timeout: BUILD_MS });
    return stdout;
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
    const before = ['buildah', ...this.#options, 'run', ...isolation, '--env', mark, container, '--'];
    return Container.of(new RunningProgram([...before, ...command]), mark, Env);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** A running container. */
export class Container {
  readonly #program: RunningProgram;
  readonly #env: string[];
  /** Its first process, as this machine sees it. */
  init = 0;

  private constructor(program: RunningProgram, env: string[]) {
    this.#program = program;
    this.#env = env;
  }

  static async of(program: RunningProgram, mark: string, env: string[]): Promise<Container> {
    const container = new Container(program, env);
    container.init = await eventually(() => {
      if (!program.is_running) throw new Error(program.output);
      const init = readdirSync('/proc').find((pid) => isFirstOf(pid, mark));
      if (init === undefined) throw new Error(`the container has not begun: ${program.output}`);
      return Number(init);
    }, START);
    return container;
  }

  /** Runs a command in it as the image's user; rejects where it fails. */
  async exec(...command: string[]): Promise<string> {
    const { stdout } = await execa('nsenter', this.#inside(command), { stripFinalNewline: false });
    return stdout;
  }

  /** Starts a command in it, which ends with it. */
  follow(...command: string[]): void {
    void execa('nsenter', this.#inside(command), { stdio: 'ignore', reject: false });
  }

  #inside(command: string[]): string[] {
    const inside = ['--target', String(this.init), '--all', '--setuid', '1000', '--setgid', '1000'];
    return [...inside, '--', 'env', '-i', ...this.#env, ...command];
  }

  /** A line of `/proc/<pid>/status` of its first process. */
  status(key: string): string {
    const status = readFileSync(`/proc/${this.init}/status`, 'utf8');
    return new RegExp(`^${key}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '';
  }

  /** Asks it to end, as every runtime does; resolves with the exit code. */
  async stop(): Promise<number | null> {
    if (this.#program.is_running) process.kill(this.init, 'SIGTERM');
    return (await this.#program.exited).code;
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
