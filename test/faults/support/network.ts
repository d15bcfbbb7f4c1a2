import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { ADMIN_PATH, runSync } from '../../support/run-sync.ts';
import { RunningProgram } from '../../support/running-program.ts';
import type { Received } from './hostile-receiver.ts';
import type { Scene } from './scene.ts';
import { until } from './until.ts';

let networks = 0;

/** A network of its own, with a loopback and nothing else, whose packets the case can drop or slow down. */
export class Network {
  readonly #name = `sandboxd-${process.pid}-${++networks}`;

  constructor(scene: Scene) {
    runSync('ip', 'netns', 'add', this.#name);
    scene.undo(() => void runSync('ip', 'netns', 'del', this.#name));
    this.run('ip', 'link', 'set', 'lo', 'up');
  }

  /** The command that starts a program in this network. */
  get through(): string[] {
    return ['ip', 'netns', 'exec', this.#name];
  }

  /** Runs a program in this network to its end. */
  run(...command: string[]): void {
    runSync(...this.through, ...command);
  }

  /** Drops what is sent to a port, until `passEverything`. */
  dropTo(port: number): void {
    this.run('nft', 'add', 'table', 'inet', 'fault');
    this.run('nft', 'add', 'chain', 'inet', 'fault', 'in', '{ type filter hook input priority 0; }');
    this.run('nft', 'add', 'rule', 'inet', 'fault', 'in', 'tcp', 'dport', String(port), 'drop');
  }

  passEverything(): void {
    this.run('nft', 'flush', 'ruleset');
  }

  /** Lets so few bits through in a second. */
  slowTo(kilobits: number): void {
    const bucket = ['burst', '5kb', 'latency', '500ms'];
    this.run('tc', 'qdisc', 'add', 'dev', 'lo', 'root', 'tbf', 'rate', `${kilobits}kbit`, ...bucket);
  }
}

/** What a receiver in another network tells of a request. */
export type Told = Pick<Received, 'event_id' | 'event_type' | 'attempt' | 'is_signed' | 'at_ms'>;

/** A receiver in a network of its own that answers 200; what it got is told line by line. */
export class FarReceiver {
  readonly requests: Told[] = [];
  port = 0;

  static async start(scene: Scene, network: Network, secret: string): Promise<FarReceiver> {
    const receiver = new FarReceiver();
    const program = join(import.meta.dirname, 'far-receiver.ts');
    const running = new RunningProgram([...network.through, process.execPath, program], {
      env: { PATH: ADMIN_PATH, RECEIVER_SECRET: secret },
      stderr: 'inherit',
    });
    scene.undo(() => running.kill());
    createInterface({ input: running.child.stdout as Readable }).on('line', (line) => {
      const told = JSON.parse(line) as Told | { port: number };
      if ('port' in told) receiver.port = told.port;
      else receiver.requests.push(told);
    });
    await until('the far receiver listens', () => receiver.port);
    return receiver;
  }
}
