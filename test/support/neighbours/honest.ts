import { expect } from 'vitest';
import type { Consumer } from '../consumer.ts';
import { eventually } from '../eventually.ts';
import type { Answer, Client } from '../manager/manager-client.ts';

const DELIVERED_WITHIN_MS = 60_000;
const WAIT = 'wait_ms=60000';
const UPLOAD = 'uploaded by the other team\n'.repeat(20_000);
const PORT = 8_000;

/** What a shell says in which 50 programs ran at once. */
const FIFTY = 'for i in $(seq 50); do (read line </proc/self/stat; echo ran; exec sleep 1) & done; wait';
/** Takes what a program of some size needs of the kernel's tables, or says what it was refused. */
const TABLES = `
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
files = [open("/etc/passwd") for _ in range(100)]
pipes = [os.pipe() for _ in range(50)]
terminals = [os.openpty() for _ in range(4)]
sockets = [socket.socketpair() for _ in range(50)]
watch = libc.inotify_init()
assert watch >= 0 and libc.inotify_add_watch(watch, b"/tmp", 0xfff) >= 0, os.strerror(ctypes.get_errno())
assert libc.shmget(0, 4096, 0o1600) >= 0 and libc.semget(0, 10, 0o1600) >= 0, os.strerror(ctypes.get_errno())
receiver, sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("127.0.0.1", 0))
receiver.settimeout(30)
sender.sendto(bytes(1000), receiver.getsockname())
assert len(receiver.recv(2000)) == 1000
print("taken", len(files) + len(pipes) + len(terminals) + len(sockets))
`;

/** Another team beside hostile sandboxes: each call must be served at its first attempt. */
export class HonestTeam {
  readonly #client: Client;
  readonly #consumer: Consumer;
  readonly #config: object;
  /** What was refused or wrong: one line each. */
  readonly refused: string[] = [];

  /** `config`: of its claims; `peer`: a server outside that a sandbox may reach. */
  constructor(client: Client, consumer: Consumer, config: object) {
    this.#client = client;
    this.#consumer = consumer;
    this.#config = { ...config, webhook: { url: consumer.url, secret: 'known to the other team alone' } };
  }

  /** A claim; throws where it is refused. */
  claim(): Promise<string> {
    return this.#client.claim(this.#config);
  }

  /** Does once all that a team does with a sandbox that it has, and with a new one. */
  async live(sandbox_id: string, peer: string): Promise<void> {
    await this.#use(sandbox_id, peer);
    const claimed = await this.#try('a claim', () => this.claim());
    if (claimed === undefined) return;
    await this.#use(claimed, peer);
    await this.#try('a fork', async () => {
      const { data } = await this.#call(201, 'POST', `${claimed}/fork`, {});
      await this.#call(202, 'DELETE', data.sandbox.id);
    });
    await this.#try('a deletion', () => this.#call(202, 'DELETE', claimed));
  }

  async #use(sandbox_id: string, peer: string): Promise<void> {
    const run = async (shell: string, wanted: string | RegExp, name: string) => {
      const { data } = await this.#call(201, 'POST', `${sandbox_id}/processes?${WAIT}`, { shell });
      const { stdout, stderr } = data.output;
      expect(`${stdout}${stderr}`, name).toMatch(wanted);
    };
    await this.#try('a process', () => run('echo started', 'started', 'output'));
    await this.#try('50 programs at once', () => run(FIFTY, /^(ran\n){50}$/, 'programs'));
    await this.#try('tables', () => run(`python3 -c '${TABLES}'`, 'taken 204', 'tables'));
    await this.#try('a connection', () =>
      run(
        `timeout 30 bash -c 'exec 3<>/dev/tcp/${peer}/7000' && echo connected`,
        /^connected\n$/,
        'connection',
      ),
    );
    await this.#try('a terminal', async () => {
      const body = { shell: 'tty', pty: { cols: 80, rows: 24 } };
      const { data } = await this.#call(201, 'POST', `${sandbox_id}/processes?${WAIT}`, body);
      expect(data.output.stdout).toMatch(/^\/dev\/pts\//);
    });
    await this.#try('an upload and a download', async () => {
      const path = `${sandbox_id}/files?path=/root/uploaded`;
      await this.#call(200, 'PUT', path, UPLOAD, { 'content-type': 'application/octet-stream' });
      const headers = { authorization: `Bearer ${this.#client.token}` };
      const response = await fetch(`${this.#client.url}/api/v1/sandboxes/${path}`, { headers });
      expect(await response.text()).toBe(UPLOAD);
    });
    await this.#try('a publish and its delivery', async () => {
      const shell = `sandboxctl publish '{"of":"${sandbox_id}"}'`;
      const before = this.#published(sandbox_id);
      await run(shell, '', 'publish');
      const arrived = () => expect(this.#published(sandbox_id)).toBeGreaterThan(before);
      await eventually(arrived, { timeout: DELIVERED_WITHIN_MS, interval: 20 });
    });
    await this.#try('a port', async () => {
      const shell = `exec python3 -m http.server ${PORT} --directory /usr/share`;
      const started = { shell, ready: { port: PORT } };
      const { data } = await this.#call(201, 'POST', `${sandbox_id}/processes`, started);
      const process = `${sandbox_id}/processes/${data.process_id}`;
      const isReady = async () => expect((await this.#call(200, 'GET', process)).data.ready).toBe(true);
      await eventually(isReady, { timeout: DELIVERED_WITHIN_MS, interval: 50 });
      await this.#call(200, 'GET', `${sandbox_id}/ports/${PORT}/`);
      await this.#call(200, 'DELETE', process);
    });
    await this.#try('a pause and a resume', async () => {
      await this.#call(200, 'POST', `${sandbox_id}/pause`);
      await this.#call(200, 'POST', `${sandbox_id}/resume`);
    });
  }

  #published(sandbox_id: string): number {
    return this.#consumer.of('agent.event').filter(({ event }) => event.payload.of === sandbox_id).length;
  }

  async #call(
    wanted: number,
    method: string,
    path: string,
    body?: object | string,
    headers?: Record<string, string>,
  ): Promise<Answer> {
    const answer = await this.#client.call(method, `/api/v1/sandboxes/${path}`, body, headers);
    if (answer.status !== wanted)
      throw new Error(`${method} ${path}: ${answer.status} ${answer.error?.code} ${answer.error?.message}`);
    return answer;
  }

  async #try<Result>(name: string, act: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await act();
    } catch (error) {
      this.refused.push(`${name}: ${(error as Error).message}`);
      return undefined;
    }
  }
}
