import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { Scene } from './scene.ts';

/** What the server says: an address, that there is no such name, that it failed, or nothing at all. */
export type Lie = string | 'no such name' | 'failure' | 'silence';

const FLAGS: Record<string, number> = { 'no such name': 0x8183, failure: 0x8182 };
const TYPE_A = 1;

let servers = 0;

/** A name server on a loopback address of its own, that says what the case wants. */
export class LyingDns {
  lie: Lie;
  questions = 0;
  readonly #address: string;
  readonly #resolver_file: string;

  private constructor(lie: Lie, address: string, resolver_file: string) {
    this.lie = lie;
    this.#address = address;
    this.#resolver_file = resolver_file;
  }

  static async start(scene: Scene, lie: Lie): Promise<LyingDns> {
    const address = `127.${100 + (process.pid % 100)}.53.${++servers}`;
    const resolver_file = scene.path('resolv.conf');
    writeFileSync(resolver_file, `nameserver ${address}\noptions timeout:2 attempts:1\n`);
    const dns = new LyingDns(lie, address, resolver_file);
    await dns.#serve(scene);
    return dns;
  }

  /** The command that starts a program with this server as its only one. */
  get through(): string[] {
    const script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"';
    return ['unshare', '-m', 'sh', '-c', script, this.#resolver_file];
  }

  async #serve(scene: Scene): Promise<void> {
    const socket = createSocket('udp4');
    socket.on('message', (question, from) => {
      this.questions += 1;
      const answer = this.#answer(question);
      if (answer) socket.send(answer, from.port, from.address);
    });
    socket.bind(53, this.#address);
    await once(socket, 'listening');
    scene.undo(() => socket.close());
  }

  #answer(message: Buffer): Buffer | null {
    if (this.lie === 'silence') return null;
    let end = 12;
    while (message[end]) end += (message[end] ?? 0) + 1;
    const question = message.subarray(12, end + 5);
    const head = Buffer.alloc(12);
    message.copy(head, 0, 0, 2);
    head.writeUInt16BE(FLAGS[this.lie] ?? 0x8180, 2);
    head.writeUInt16BE(1, 4);
    if (FLAGS[this.lie] !== undefined || message.readUInt16BE(end + 1) !== TYPE_A) {
      return Buffer.concat([head, question]);
    }
    head.writeUInt16BE(1, 6);
    const address = this.lie.split('.').map(Number);
    const record = Buffer.from([0xc0, 12, 0, TYPE_A, 0, 1, 0, 0, 0, 0, 0, 4, ...address]);
    return Buffer.concat([head, question, record]);
  }
}
