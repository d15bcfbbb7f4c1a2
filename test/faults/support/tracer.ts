import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Scene } from './scene.ts';
import { until } from './until.ts';

/** Watches, or spoils, the system calls of a process and its threads. */
export class Tracer {
  readonly #output: string;
  readonly #ended: Promise<unknown>;
  readonly #pid: number;

  private constructor(output: string, ended: Promise<unknown>, pid: number) {
    this.#output = output;
    this.#ended = ended;
    this.#pid = pid;
  }

  /** Attaches with strace's own options; returns when it is attached. */
  static async attach(scene: Scene, pid: number, options: string[]): Promise<Tracer> {
    const output = scene.path(`trace-${pid}-${options.length}`);
    const child = spawn('strace', ['-f', '-tt', '-y', '-o', output, '-p', String(pid), ...options], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    const tracer = new Tracer(output, once(child, 'exit'), child.pid as number);
    scene.undo(() => tracer.detach());
    await until('the tracer is attached', () => said.includes('attached'));
    return tracer;
  }

  /** The calls seen so far, a line each. */
  lines(): string[] {
    return readFileSync(this.#output, 'utf8').split('\n').filter(Boolean);
  }

  async detach(): Promise<void> {
    try {
      process.kill(this.#pid, 'SIGINT');
    } catch {
      // It ended with the process that it watched.
    }
    await this.#ended;
  }
}
