import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { execaNode } from 'execa';

/** What a program can be asked, by name: each verb takes one value and gives one. */
export type Verbs = Record<string, (input: never) => unknown>;

interface Question {
  call: number;
  verb: string;
  input: unknown;
}

interface Answer {
  call: number;
  output?: unknown;
  error?: string;
}

/** A part of a benchmark that runs in a process of its own, so that what it costs is not measured with the rest. */
export class Program<V extends Verbs> {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #calls = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on('message', (answer: Answer) => {
      this.#waiting.get(answer.call)?.(answer);
      this.#waiting.delete(answer.call);
    });
    child.once('exit', () => {
      for (const [call, resolve] of this.#waiting) resolve({ call, error: 'the program ended' });
      this.#waiting.clear();
    });
  }

  /** Starts the script at `url`; `env` is added to this process's environment. */
  static async start<V extends Verbs>(url: URL, env: NodeJS.ProcessEnv = {}): Promise<Program<V>> {
    const { nodeChildProcess } = execaNode(fileURLToPath(url), {
      env,
      stdio: 'inherit',
      buffer: false,
      reject: false,
      cleanup: false, // it ends once the channel to this process has closed, and what it has started with it
    });
    await once(nodeChildProcess, 'spawn');
    return new Program<V>(nodeChildProcess);
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** Rejects where the program does or ends. */
  async ask<Name extends keyof V & string>(
    verb: Name,
    input: Parameters<V[Name]>[0],
  ): Promise<Awaited<ReturnType<V[Name]>>> {
    const call = ++this.#calls;
    const answer = await new Promise<Answer>((resolve) => {
      this.#waiting.set(call, resolve);
      this.#child.send({ call, verb, input } satisfies Question);
    });
    if (answer.error !== undefined) throw new Error(`${verb}: ${answer.error}`);
    return answer.output as Awaited<ReturnType<V[Name]>>;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

/** The program's side: answers what it is asked. It ends with whoever asks. */
export function serve<V extends Verbs>(verbs: V): void {
  process.on('disconnect', () => process.exit());
  process.on('message', async ({ call, verb, input }: Question) => {
    try {
      const output = await verbs[verb]?.(input as never);
      process.send?.({ call, output } satisfies Answer);
    } catch (error) {
      process.send?.({ call, error: (error as Error).message } satisfies Answer);
    }
  });
}
