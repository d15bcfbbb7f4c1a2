import { readFileSync } from 'node:fs';
import { RunningProgram } from '../../support/running-program.ts';
import type { Scene } from './scene.ts';

/** Watches, or spoils, the system calls of a process and its threads. */
export class Tracer {
  readonly #output: string;
  readonly #program: RunningProgram;

  private constructor(output: string, program: RunningProgram) {
    this.#output = output;
    this.#program = program;
  }

  /** Attaches with strace's own options; returns when it is attached. */
  static async attach(scene: Scene, pid: number, options: string[]): Promise<Tracer> {
    const output = scene.path(`trace-${pid}-${options.length}`);
    const command = ['strace', '-f', '-tt', '-y', '-o', output, '-p', String(pid), ...options];
    const program = new RunningProgram(command, { stdout: 'ignore' });
    const tracer = new Tracer(output, program);
    scene.undo(() => tracer.detach());
    await program.wrote(/attached/);
    return tracer;
  }

  /** The calls seen so far, a line each. */
  lines(): string[] {
    return readFileSync(this.#output, 'utf8').split('\n').filter(Boolean);
  }

  async detach(): Promise<void> {
    // It may have ended with the process that it watched.
    await this.#program.stop('SIGINT');
  }
}
