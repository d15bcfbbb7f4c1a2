import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { EVENT_TYPES } from '../../src/contract/events.ts';
import { networkProblem } from '../../src/network/problem.ts';
import { markOf } from '../../src/runtime/local/host-process.ts';
import { startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';
import { ManagerProgram, runManagerCommand } from '../support/manager-program.ts';
import { scratchFolder } from '../support/scratch.ts';

const problem = await networkProblem();
const SECRET = 'a key made for this test';

// biome-ignore lint/suspicious/noExplicitAny: what the API answers is what a test looks at.
type Answered = any;

class Caller {
  readonly #manager: () => ManagerProgram;
  readonly #token: string;

  constructor(manager: () => ManagerProgram, token: string) {
    this.#manager = manager;
    this.#token = token;
  }

  async call(
    method: string,
    path: string,
    body?: object,
  ): Promise<{ status: number; data: Answered; error: Answered }> {
    const response = await fetch(`${this.#manager().url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const { data, error } = (await response.json()) as { data: unknown; error: unknown };
    return { status: response.status, data, error };
  }

  /** The data of a call that must succeed. */
  async do(method: string, path: string, body?: object): Promise<Answered> {
    const { status, data, error } = await this.call(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(error)}`);
    return data;
  }

  async run(sandbox_id: string, shell: string): Promise<{ exit_code: number; stdout: string }> {
    const ran = await this.do('POST', `/sandboxes/${sandbox_id}/processes?wait_ms=20000`, { shell });
    return { exit_code: ran.exit_code, stdout: ran.output.stdout.trim() };
  }
}

/** The built manager on a folder of its own, with isolated sandboxes; nothing of it is left when the test has ended. */
async function start() {
  const folder = scratchFolder();
  const data_dir = join(folder, 'data');
  const database = ['--database', `sqlite:${join(folder, 'manager.db')}`];
  const options = [
    ...['--listen', '127.0.0.1:0', '--runtime', 'local', '--data-dir', data_dir, ...database],
    ...['--secret-key-file', join(folder, 'key'), '--allow-webhook-cidr', '127.0.0.0/8'],
  ];
  let manager = await ManagerProgram.start(options);
  onTestFinished(() => manager.end('SIGTERM'));
  const scopes = ['--scope', 'sandboxes:write', '--scope', 'webhooks:read', '--scope', 'usage:read'];
  const token = await runManagerCommand('token', 'create', '--team', 'team_1', ...scopes, ...database);
  const caller = new Caller(() => manager, token);
  onTestFinished(async () => {
    const { sandboxes } = await caller.do('GET', '/sandboxes');
    for (const { id } of sandboxes) await caller.call('DELETE', `/sandboxes/${id}`);
    await eventually(() => expect(sandboxesIn(data_dir)).toEqual([]), { timeout: 60_000, interval: 50 });
  });
  const restart = async (signal: NodeJS.Signals) => {
    await manager.end(signal);
    manager = await ManagerProgram.start(options);
  };
  return { caller, data_dir, restart };
}

function sandboxesIn(data_dir: string): string[] {
  return readdirSync(data_dir).filter((name) => !name.startsWith('.'));
}

/** Pids of everything that runs for one of these sandboxes below a directory. */
function processesOf(data_dir: string, sandbox_ids: string[]): string[] {
  const marks = sandbox_ids.map((id) => markOf(join(data_dir, id)));
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const environment = readFileSync(`/proc/${name}/environ`, 'utf8');
      return marks.some((mark) => environment.includes(mark));
    } catch {
      return false;
    }
  });
}

describe('the real run', () => {
  it('from claim to deletion: the consumer holds all ten kinds of events, each verified, and nothing is left', async () => {
    const { caller, data_dir } = await start();
    const consumer = await startConsumer();
    const config = {
      webhook: { url: consumer.url, secret: SECRET, watch_dir: '/work' },
      env_vars: { MODE: 'real' },
    };
    const claimed = await caller.do('POST', '/sandboxes', { config });
    const id = claimed.sandbox_id as string;
    expect(claimed).toMatchObject({ status: 'running', cluster_id: 'local' });
    expect(claimed.pod_name).not.toBe('');
    await consumer.arrival('sandbox.ready');

    const written = await caller.run(id, 'mkdir -p /work; echo hello > /work/file; echo $MODE; whoami');
    expect(written).toEqual({ exit_code: 0, stdout: 'real\nroot' });
    await eventually(() => {
      const paths = consumer.of('file.modified').map(({ event }) => event.payload.path);
      expect(paths).toContain('/work/file');
    }, 120_000);
    const publish =
      'curl -sf -H "Content-Type: application/json" -d \'{"payload":{"step":1}}\' $SANDBOXD_URL/api/v1/webhook/publish';
    expect((await caller.run(id, publish)).exit_code).toBe(0);
    expect((await caller.run(id, 'kill -SEGV $$')).exit_code).toBe(139);

    expect(await caller.do('POST', `/sandboxes/${id}/pause`)).toMatchObject({ paused: true });
    expect((await caller.call('POST', `/sandboxes/${id}/processes`, { shell: 'true' })).status).toBe(409);
    await caller.do('POST', `/sandboxes/${id}/resume`);
    expect((await caller.run(id, 'cat /work/file')).stdout).toBe('hello');

    const { sandbox: child } = await caller.do('POST', `/sandboxes/${id}/fork`, {});
    expect(child).toMatchObject({ paused: true, status: 'paused' });
    await caller.do('POST', `/sandboxes/${child.id}/resume`);
    expect((await caller.run(child.id, 'cat /work/file; echo changed > /work/file')).stdout).toBe('hello');
    expect((await caller.run(id, 'cat /work/file')).stdout).toBe('hello');

    for (const each of [child.id, id]) await caller.do('DELETE', `/sandboxes/${each}`);
    await consumer.arrival('sandbox.deleted', 2);
    await consumer.arrival('sandbox.killed', 2);
    for (const each of [child.id, id]) {
      await eventually(
        async () =>
          expect((await caller.call('GET', `/sandboxes/${each}?include_deleted=true`)).data.status).toBe(
            'deleted',
          ),
        20_000,
      );
    }

    expect(new Set(consumer.types)).toEqual(new Set(EVENT_TYPES));
    expect(consumer.unsigned(SECRET)).toEqual([]);
    const of = (sandbox_id: string) =>
      consumer.deliveries.filter(({ body }) => JSON.parse(body).sandbox_id === sandbox_id);
    for (const each of [id, child.id]) {
      const sequences = of(each).flatMap(({ event }) => event.sequence ?? []);
      expect([...new Set(sequences)].sort((a, b) => a - b)).toEqual(sequences.map((_, n) => n + 1));
    }
    const kinds = of(id).map(({ event }) => event.event_type);
    expect(kinds.filter((kind) => kind === 'sandbox.paused')).toHaveLength(1);
    expect(kinds.filter((kind) => kind === 'sandbox.ready')).toHaveLength(1);
    expect(consumer.of('sandbox.killed').every(({ event }) => event.payload.reason === 'api')).toBe(true);
    expect(sandboxesIn(data_dir)).toEqual([]);
    expect(processesOf(data_dir, [id, child.id])).toEqual([]);
    expect(readFileSync('/proc/mounts', 'utf8')).not.toContain(data_dir);
  });

  it('outlives a manager that is killed: its sandboxes go on and are found again', async () => {
    const { caller, restart } = await start();
    const consumer = await startConsumer();
    const config = { webhook: { url: consumer.url, secret: SECRET } };
    const { sandbox_id: id } = await caller.do('POST', '/sandboxes', { config });
    const counting = 'i=0; while :; do i=$((i+1)); echo $i > /root/count; sleep 0.02; done';
    await caller.do('POST', `/sandboxes/${id}/processes`, { shell: counting });
    const counted = async () => Number((await caller.run(id, 'cat /root/count')).stdout);
    await eventually(async () => expect(await counted()).toBeGreaterThan(0));
    await restart('SIGKILL');
    const before = await counted();
    await eventually(async () => expect(await counted()).toBeGreaterThan(before));
    expect(await caller.do('GET', `/sandboxes/${id}`)).toMatchObject({ status: 'running' });
    expect(consumer.of('sandbox.ready')).toHaveLength(1);
  });

  it('loses no event to a deletion while the consumer is down', async () => {
    const { caller } = await start();
    const consumer = await startConsumer();
    consumer.answer = (_, response) => response.writeHead(503).end();
    const config = { webhook: { url: consumer.url, secret: SECRET } };
    const { sandbox_id: id } = await caller.do('POST', '/sandboxes', { config });
    const publish =
      'for i in 1 2 3 4 5; do curl -sf -H "Content-Type: application/json" -d "{\\"payload\\":{\\"n\\":$i}}" $SANDBOXD_URL/api/v1/webhook/publish; done';
    expect((await caller.run(id, publish)).exit_code).toBe(0);
    await caller.do('DELETE', `/sandboxes/${id}`);
    await eventually(
      async () =>
        expect((await caller.call('GET', `/sandboxes/${id}?include_deleted=true`)).data.status).toBe(
          'deleted',
        ),
      30_000,
    );
    const taken = new Set<number>();
    consumer.answer = ({ event }, response) => {
      taken.add(event.sequence ?? 0);
      response.writeHead(204).end();
    };
    const kinds = ['sandbox.ready', 'process.started', 'process.exited', 'sandbox.killed', 'sandbox.deleted'];
    await eventually(() => expect([...taken].sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), {
      timeout: 60_000,
      interval: 100,
    });
    expect(new Set(consumer.types)).toEqual(new Set([...kinds, 'agent.event']));
    expect(consumer.unsigned(SECRET)).toEqual([]);
    const bodies = new Map(consumer.deliveries.map(({ event, body }) => [event.event_id, body]));
    expect(consumer.deliveries.every(({ event, body }) => bodies.get(event.event_id) === body)).toBe(true);
  });
});

describe.skipIf(problem !== null)(`a sandbox's bytes${problem === null ? '' : ` (${problem})`}`, () => {
  it('are in its usage windows as the kernel has counted them, however often its manager is killed', async () => {
    const { caller, restart } = await start();
    const { sandbox_id } = await caller.do('POST', '/sandboxes', {});
    const passed = async () => {
      const { egress, ingress } = (await caller.do('GET', `/sandboxes/${sandbox_id}?include_deleted=true`))
        .network_usage;
      return [egress.passed_bytes, ingress.passed_bytes];
    };
    // Also passes while no manager runs: nothing limits it.
    const send = 'bash -c "while :; do echo 123456789 > /dev/udp/192.0.2.1/9; sleep 0.01; done"';
    await caller.do('POST', `/sandboxes/${sandbox_id}/processes`, { shell: send });
    for (const bytes of [1_000, 10_000, 20_000]) {
      await eventually(async () => expect((await passed())[0]).toBeGreaterThan(bytes));
      const pausing = caller.call('POST', `/sandboxes/${sandbox_id}/pause`).catch(() => null);
      await restart('SIGKILL');
      await pausing;
      // Whether it is paused depends on how far the killed manager came.
      await eventually(async () => {
        await caller.call('POST', `/sandboxes/${sandbox_id}/resume`);
        expect((await caller.do('GET', `/sandboxes/${sandbox_id}`)).status).toBe('running');
      });
    }
    await caller.do('DELETE', `/sandboxes/${sandbox_id}`);
    await restart('SIGKILL');
    const isDeleted = async () =>
      expect((await caller.do('GET', `/sandboxes/${sandbox_id}?include_deleted=true`)).status).toBe(
        'deleted',
      );
    await eventually(isDeleted);
    const { windows } = await caller.do('GET', '/usage/windows?limit=1000');
    const sum = (type: string) =>
      windows
        .filter(({ window_type }: Answered) => window_type === type)
        .reduce((all: number, { value }: Answered) => all + value, 0);
    expect([sum('sandbox.egress_bytes'), sum('sandbox.ingress_bytes')]).toEqual(await passed());
  }, 180_000);
});
