import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { Daemon, SECRET } from './support/daemon.ts';
import { HostileReceiver, type Received } from './support/hostile-receiver.ts';
import { expectKept } from './support/judge.ts';
import { Ledger } from './support/ledger.ts';
import { ResourceGroup } from './support/resource-group.ts';
import { fault, type Scene } from './support/scene.ts';
import { hang, reset, status } from './support/steps.ts';
import { timed, until } from './support/until.ts';

const MIB = 1024 * 1024;

interface Payload {
  process_id: string;
  pid: number;
  exit_code?: number;
  signal?: string | null;
  reason?: string;
  stdout_preview?: string;
}

function onlyChildOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'));
}

async function stage(scene: Scene, through: string[] = []) {
  const receiver = await HostileReceiver.start(scene, { secret: SECRET });
  const daemon = await Daemon.start(scene, { webhook_url: receiver.url, through });
  return { receiver, daemon };
}

/** The payloads of one kind of event, once for each event id. */
function told(receiver: HostileReceiver, event_type: string): Payload[] {
  const first = new Map<string, Received>();
  for (const request of receiver.requests) {
    if (request.event_type === event_type && !first.has(request.event_id))
      first.set(request.event_id, request);
  }
  return [...first.values()].map(({ body }) => JSON.parse(body.toString('utf8')).payload as Payload);
}

function tellsEnd(receiver: HostileReceiver, process_id: string): Payload | undefined {
  const ends = [...told(receiver, 'process.exited'), ...told(receiver, 'process.crashed')];
  return ends.find((payload) => payload.process_id === process_id);
}

describe('process and signals', () => {
  fault(
    'F51 every kind of end is told once, with the right code and kind',
    { beside: true },
    async (scene) => {
      const { receiver, daemon } = await stage(scene);
      const kinds = [
        ['zero', 'exit 0', 'process.exited', { exit_code: 0, signal: null }],
        ['three', 'exit 3', 'process.exited', { exit_code: 3, signal: null }],
        ['segv', 'kill -SEGV $$', 'process.crashed', { exit_code: 139, signal: 'SIGSEGV', reason: 'signal' }],
        ['kill', 'kill -KILL $$', 'process.crashed', { exit_code: 137, signal: 'SIGKILL' }],
        ['term', 'kill -TERM $$', 'process.crashed', { exit_code: 143, signal: 'SIGTERM' }],
      ] as const;
      for (const [process_id, script] of kinds) await daemon.run(['sh', '-c', script], { process_id });
      for (const [process_id, , event_type, expected] of kinds) {
        const end = await until(`the end of ${process_id}`, () => tellsEnd(receiver, process_id));
        expect(end).toMatchObject(expected);
        expect(told(receiver, event_type).some((payload) => payload.process_id === process_id)).toBe(true);
      }
      for (const command of [['/no/such/program'], ['/etc/passwd'], ['/tmp']]) {
        const answer = await daemon.ask('/api/v1/processes', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ command }),
        });
        expect(answer.status).toBe(400);
      }
      await until('all is delivered', async () => (await daemon.sandbox()).outbox.pending === 0);
      expect(told(receiver, 'process.started')).toHaveLength(kinds.length);
      expect(told(receiver, 'process.exited').length + told(receiver, 'process.crashed').length).toBe(
        kinds.length,
      );
    },
  );

  fault(
    'F51 200 processes that end at once are each told started and ended once',
    { beside: true, timeout_ms: 120_000 },
    async (scene) => {
      const { receiver, daemon } = await stage(scene);
      let started = 0;
      const spawner = async () => {
        while (started < 200) await daemon.run(['sh', '-c', `exit ${started++ % 7}`]);
      };
      await Promise.all(Array.from({ length: 8 }, spawner));
      await until('every end is told', () => told(receiver, 'process.exited').length === 200, 60_000);
      const starts = told(receiver, 'process.started').map(({ process_id }) => process_id);
      const ends = told(receiver, 'process.exited').map(({ process_id }) => process_id);
      expect(new Set(starts).size).toBe(200);
      expect(new Set(ends).size).toBe(200);
      expect(receiver.requests.every(({ is_signed }) => is_signed)).toBe(true);
    },
  );

  fault(
    'F51 ends that fall while the daemon is dead are told once after its restart',
    { beside: true },
    async (scene) => {
      const { receiver, daemon } = await stage(scene);
      await daemon.run(['sh', '-c', 'sleep 1; exit 5'], { process_id: 'meanwhile' });
      await until('its start is told', () => told(receiver, 'process.started').length === 1);
      await daemon.stop('SIGKILL');
      await until('it has ended', () => !isAlive(told(receiver, 'process.started')[0]?.pid ?? 0));
      await Daemon.start(scene, { webhook_url: receiver.url });
      const end = await until('its end is told', () => tellsEnd(receiver, 'meanwhile'));
      expect([5, null]).toContain(end.exit_code);
      expect(told(receiver, 'sandbox.ready')).toHaveLength(1);
    },
  );

  fault(
    'F52 as the first process of a namespace it starts, with one clear warning',
    { needs: ['root', 'unshare'], beside: true },
    async (scene) => {
      const { daemon, receiver } = await stage(scene, [
        'unshare',
        '--pid',
        '--fork',
        '--kill-child',
        '--mount-proc',
      ]);
      // The kernel shields a namespace's first process from the signal that its parent's end sends.
      scene.undo(() => process.kill(onlyChildOf(daemon.pid), 'SIGKILL'));
      const warnings = () =>
        daemon.log.filter(({ level, msg }) => level === 'warn' && msg?.includes('PID 1'));
      await until('it warns', () => warnings().length === 1);
      await daemon.run(['sh', '-c', '(sleep 0.2 &) ; exit 0'], { process_id: 'leaver' });
      await until('its end is told', () => tellsEnd(receiver, 'leaver'));
      expect((await daemon.publish({})).status).toBe(202);
    },
  );

  fault(
    'F52 behind tini no orphan stays a zombie',
    { needs: ['root', 'unshare', 'tini'], beside: true },
    async (scene) => {
      const { daemon } = await stage(scene, [
        'unshare',
        '--pid',
        '--fork',
        '--kill-child',
        '--mount-proc',
        'tini',
        '-s',
        '--',
      ]);
      await daemon.run(['sh', '-c', '(sleep 0.1 &) ; (sleep 0.2 &) ; exit 0'], { process_id: 'leaver' });
      await until('no zombies are left', async () => {
        const { json } = await daemon.ask('/api/v1/processes?wait_ms=5000', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({
            command: ['sh', '-c', 'cat /proc/[0-9]*/stat | cut -d" " -f3 | grep -c Z; true'],
          }),
        });
        return (json?.data as { output?: { stdout: string } } | undefined)?.output?.stdout.trim() === '0';
      });
    },
  );

  fault(
    'F53 SIGTERM ends process groups in order, stores sandbox.killed and delivers it',
    { beside: true },
    async (scene) => {
      const { receiver, daemon } = await stage(scene);
      await daemon.run(['sh', '-c', 'sleep 60 & sleep 60'], { process_id: 'polite' });
      await daemon.run(['sh', '-c', 'trap "" TERM; echo up; while :; do sleep 0.1; done'], {
        process_id: 'stubborn',
      });
      const pids = told(receiver, 'process.started').map(({ pid }) => pid);
      const { result, took_ms } = await timed(() => daemon.stop('SIGTERM'));
      expect(result).toEqual({ code: 0, signal: null });
      // Twice the grace, and what a start and an end of programs take.
      expect(took_ms).toBeLessThan(20_000);
      expect(tellsEnd(receiver, 'polite')).toMatchObject({ signal: 'SIGTERM' });
      expect(tellsEnd(receiver, 'stubborn')).toMatchObject({ signal: 'SIGKILL' });
      expect(receiver.requests.at(-1)?.event_type).toBe('sandbox.killed');
      expect(pids.filter(isAlive)).toEqual([]);
    },
  );

  fault(
    'F53 with a receiver that hangs, SIGTERM ends within the grace and loses nothing',
    { beside: true },
    async (scene) => {
      const { receiver, daemon } = await stage(scene);
      await until('sandbox.ready is delivered', async () => (await daemon.sandbox()).outbox.pending === 0);
      receiver.behave(hang);
      const ledger = new Ledger();
      await ledger.publishMany(daemon, 50, 8);
      const { result, took_ms } = await timed(() => daemon.stop('SIGTERM'));
      expect(result.code).toBe(0);
      expect(took_ms).toBeLessThan(20_000);
      receiver.behave(status(200));
      await Daemon.start(scene, { webhook_url: receiver.url });
      await expectKept({ receiver, ledger, may_repeat: true });
      await until('both lives are told', () => told(receiver, 'sandbox.killed').length === 1);
      await until('both lives are told', () => told(receiver, 'sandbox.ready').length === 2);
    },
  );

  fault('F53 a second SIGTERM ends at once, with sandbox.killed stored', { beside: true }, async (scene) => {
    const receiver = await HostileReceiver.start(scene, { secret: SECRET });
    receiver.behave(hang);
    const options = ['--shutdown-grace-ms', '20000'];
    const daemon = await Daemon.start(scene, { webhook_url: receiver.url, options });
    await daemon.run(['sh', '-c', 'trap "" TERM; while :; do sleep 0.1; done'], { process_id: 'stubborn' });
    daemon.signal('SIGTERM');
    await until('it is shutting down', () => daemon.told('shutting down'));
    const { took_ms } = await timed(() => daemon.stop('SIGTERM'));
    expect(took_ms).toBeLessThan(20_000);
    receiver.behave(status(200));
    receiver.requests.length = 0;
    await Daemon.start(scene, { webhook_url: receiver.url });
    await until('the end is told', () => told(receiver, 'sandbox.killed').length === 1);
  });

  fault('F57 a receiver that resets during the shutdown: an orderly end', { beside: true }, async (scene) => {
    const { receiver, daemon } = await stage(scene);
    receiver.behave(reset);
    const ledger = new Ledger();
    const publishing = ledger.publishMany(daemon, 200, 8);
    await until('some are kept', () => ledger.acknowledged.size > 20);
    expect(await daemon.stop('SIGTERM')).toEqual({ code: 0, signal: null });
    await publishing;
    expect(daemon.stderr.join('\n')).not.toMatch(/unhandled|unexpected error/i);
    receiver.behave(status(200));
    await Daemon.start(scene, { webhook_url: receiver.url });
    await expectKept({ receiver, ledger, may_repeat: true });
  });

  fault(
    'F54 no process can be started at a limit: the caller is told, and the daemon goes on',
    { needs: ['root', 'pids control group'], beside: true },
    async (scene) => {
      const group = new ResourceGroup(scene, 'pids');
      const { receiver, daemon } = await stage(scene, group.through);
      // With its threads and a first process behind it, nothing else comes and goes.
      await daemon.run(['true'], { process_id: 'first' });
      await until('its end is told', () => tellsEnd(receiver, 'first'));
      group.set('pids.max', group.get('pids.current'));
      const refused = await daemon.ask('/api/v1/processes', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"command":["sleep","1"]}',
      });
      expect(refused.status).toBeGreaterThanOrEqual(400);
      const ledger = new Ledger();
      expect((await ledger.publish(daemon))?.status).toBe(202);
      group.set('pids.max', 'max');
      await daemon.run(['true'], { process_id: 'later' });
      await until('its end is told', () => tellsEnd(receiver, 'later'));
      await expectKept({ receiver, ledger });
    },
  );

  fault(
    'F54 a child that the kernel ends for its memory is told as crashed',
    { needs: ['root', 'memory control group'], beside: true },
    async (scene) => {
      const { receiver, daemon } = await stage(scene);
      const group = new ResourceGroup(scene, 'memory');
      group.set('memory.limit_in_bytes', 24 * MIB);
      const greedy = 'x=0123456789abcdef; while :; do x="$x$x"; done';
      await daemon.run([...group.through, 'sh', '-c', greedy], { process_id: 'greedy' });
      const end = await until('its end is told', () => tellsEnd(receiver, 'greedy'));
      expect(end).toMatchObject({ exit_code: 137, signal: 'SIGKILL' });
      expect(told(receiver, 'process.crashed')).toHaveLength(1);
      expect(daemon.exit).toBeNull();
    },
  );

  fault(
    'F54 a child that floods its output, and one that never reads its input, cost bounded memory',
    { beside: true, timeout_ms: 90_000 },
    async (scene) => {
      const { receiver, daemon } = await stage(scene);
      const before = daemon.residentBytes();
      await daemon.run(['sh', '-c', 'head -c 300000000 /dev/zero; echo done'], { process_id: 'flood' });
      await daemon.run(['sleep', '60'], { process_id: 'deaf', stdin: 'pipe' });
      const feeding = daemon
        .ask('/api/v1/processes/deaf/stdin', {
          method: 'POST',
          body: Buffer.alloc(8 * MIB),
          within_ms: 20_000,
        })
        .catch(() => null);
      let most = 0;
      const end = await until(
        'the flood is over',
        () => {
          most = Math.max(most, daemon.residentBytes());
          return tellsEnd(receiver, 'flood');
        },
        60_000,
      );
      expect(end).toMatchObject({ exit_code: 0 });
      expect(end.stdout_preview?.endsWith('done\n')).toBe(true);
      expect(most - before).toBeLessThan(96 * MIB);
      const kept = readdirSync(`${daemon.state_dir}/processes/flood`);
      const bytes = kept.reduce(
        (sum, file) => sum + sizeOf(`${daemon.state_dir}/processes/flood/${file}`),
        0,
      );
      expect(bytes).toBeLessThan(34 * MIB);
      expect((await daemon.publish({})).status).toBe(202);
      await daemon.ask('/api/v1/processes/deaf', { method: 'DELETE' });
      await feeding;
    },
  );
});

function isAlive(pid: number): boolean {
  try {
    const state = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '');
    return !state.startsWith('Z');
  } catch {
    return false;
  }
}

function sizeOf(path: string): number {
  try {
    return readFileSync(path).length;
  } catch {
    return 0;
  }
}
