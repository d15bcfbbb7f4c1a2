import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';
import { succeeds } from './run-sync.ts';
import { RunningProgram } from './running-program.ts';

/** Whether Debian's server is there and used; tests that need it are skipped by name where it is not. */
export const HAS_REDIS = !process.env.SANDBOXD_TEST_QUICK && succeeds('redis-server', '--version');

const STARTS = 5;

/** A server of its own on loopback that keeps nothing; it ends with `stop`. */
export class RedisServer {
  readonly port: number;
  readonly #folder: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #password: string;
  #program: RunningProgram | null = null;

  private constructor(port: number, env: NodeJS.ProcessEnv, password: string) {
    this.port = port;
    this.#password = password;
    this.#env = env;
    this.#folder = mkdtempSync(join(tmpdir(), 'sandboxd-redis-'));
  }

  /** With a `password` it takes no command without. */
  static async start(env: NodeJS.ProcessEnv = {}, password = ''): Promise<RedisServer> {
    for (let i = 1; ; i++) {
      const server = new RedisServer(await freePort(), env, password);
      try {
        await server.start();
        return server;
      } catch (error) {
        await server.stop();
        if (i === STARTS) throw error;
      }
    }
  }

  get url(): string {
    const user = this.#password === '' ? '' : `:${this.#password}@`;
    return `redis://${user}127.0.0.1:${this.port}`;
  }

  /** Starts it, again after `kill`; resolves when it listens. */
  async start(): Promise<void> {
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--save', '', '--dir', this.#folder];
    if (this.#password !== '') args.push('--requirepass', this.#password);
    this.#program = new RunningProgram(['redis-server', ...args], { env: this.#env, stderr: 'ignore' });
    await this.#program.wrote(/Ready to accept connections/);
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#program?.kill(signal);
  }

  async kill(): Promise<void> {
    const program = this.#program;
    this.#program = null;
    await program?.stop();
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Asks it as an operator does, on a connection of its own. */
  async command(name: string, ...args: string[]): Promise<unknown> {
    const redis = new Redis(this.url, { retryStrategy: () => null, lazyConnect: true });
    redis.on('error', () => {});
    try {
      await redis.connect();
      return await redis.call(name, ...args);
    } finally {
      redis.disconnect();
    }
  }
}
