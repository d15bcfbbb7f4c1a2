import { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { Daemon, SECRET } from './support/daemon.ts';
import { HostileReceiver, type Received } from './support/hostile-receiver.ts';
import { expectKept } from './support/judge.ts';
import { Ledger } from './support/ledger.ts';
import { fault, type Scene } from './support/scene.ts';
import { until } from './support/until.ts';

interface FileEvent {
  event_type: string;
  path: string;
  old_path?: string;
}

interface Stage {
  watched?: string;
  through?: string[];
}

async function stage(scene: Scene, { watched = scene.path('watched'), through = [] }: Stage = {}) {
  const receiver = await HostileReceiver.start(scene, { secret: SECRET });
  const daemon = await Daemon.start(scene, {
    webhook_url: receiver.url,
    through,
    options: ['--watch-dir', watched],
  });
  return { receiver, daemon, watched };
}

const parsed = new WeakMap<Received, FileEvent>();

/** The file events that came, in order; each is parsed once. */
function told(receiver: HostileReceiver): FileEvent[] {
  return receiver.requests
    .filter(({ event_type }) => event_type === 'file.modified')
    .map((request) => {
      const event = parsed.get(request) ?? (JSON.parse(request.body.toString('utf8')).payload as FileEvent);
      parsed.set(request, event);
      return event;
    });
}

function tells(receiver: HostileReceiver, event_type: string, path: string): Promise<boolean> {
  return until(`${event_type} of ${path}`, () =>
    told(receiver).some((event) => event.event_type === event_type && event.path === path),
  );
}

describe('watch', () => {
  fault(
    'F56 too few watches: the daemon lives, says degraded, and misses no file',
    { needs: ['root', 'unshare'], beside: true },
    async (scene) => {
      const watched = scene.path('watched');
      mkdirSync(`${watched}/a/b/c/d/e`, { recursive: true });
      const script = 'echo 3 > /proc/sys/user/max_inotify_watches && exec "$0" "$@"';
      const { receiver, daemon } = await stage(scene, {
        watched,
        through: ['unshare', '-U', '-r', 'sh', '-c', script],
      });
      await until('it says degraded', async () => (await daemon.readiness()).says.includes('degraded'));
      expect((await daemon.readiness()).status).toBe(200);
      writeFileSync(`${watched}/a/b/c/d/e/deep`, 'x');
      await tells(receiver, 'create', `${watched}/a/b/c/d/e/deep`);
      expect((await daemon.publish({})).status).toBe(202);
    },
  );

  fault(
    'F56 a directory that is missing, made, removed, made again and replaced is watched all along',
    { beside: true },
    async (scene) => {
      const { receiver, daemon, watched } = await stage(scene);
      mkdirSync(watched);
      writeFileSync(`${watched}/first`, '1');
      await tells(receiver, 'create', `${watched}/first`);
      rmSync(watched, { recursive: true });
      await tells(receiver, 'remove', `${watched}/first`);
      mkdirSync(watched);
      writeFileSync(`${watched}/second`, '2');
      await tells(receiver, 'create', `${watched}/second`);
      renameSync(watched, scene.path('moved-away'));
      mkdirSync(watched);
      writeFileSync(`${watched}/third`, '3');
      await tells(receiver, 'create', `${watched}/third`);
      appendFileSync(scene.path('moved-away/second'), 'nobody is told');
      writeFileSync(`${watched}/last`, '4');
      await tells(receiver, 'create', `${watched}/last`);
      expect(told(receiver).filter(({ path }) => !path.startsWith(watched))).toEqual([]);
      expect(daemon.exit).toBeNull();
    },
  );

  fault(
    'F56 links are not followed: no event from outside, no end of a loop',
    { beside: true },
    async (scene) => {
      const watched = scene.path('watched');
      mkdirSync(`${watched}/in`, { recursive: true });
      mkdirSync(scene.path('outside'));
      symlinkSync('..', `${watched}/in/loop`);
      symlinkSync(scene.path('outside'), `${watched}/out`);
      const { receiver } = await stage(scene, { watched });
      writeFileSync(scene.path('outside/secret'), 'x');
      writeFileSync(`${watched}/in/seen`, 'x');
      await tells(receiver, 'create', `${watched}/in/seen`);
      const paths = new Set(told(receiver).map(({ path }) => path));
      expect(
        [...paths].filter(
          (path) => path.includes('loop/') || path.includes('out/') || path.includes('outside'),
        ),
      ).toEqual([]);
    },
  );

  fault(
    'F56 20 000 files at once: the daemon lives, publishing goes on, and each file is told',
    { beside: true, timeout_ms: 120_000 },
    async (scene) => {
      const watched = scene.path('watched');
      mkdirSync(watched);
      const { receiver, daemon } = await stage(scene, { watched });
      const ledger = new Ledger();
      for (let folder = 0; folder < 100; folder++) {
        mkdirSync(`${watched}/d${folder}`);
        for (let file = 0; file < 200; file++) writeFileSync(`${watched}/d${folder}/f${file}`, 'x');
        if (folder % 10 === 0) expect((await ledger.publish(daemon))?.status).toBe(202);
      }
      const created = () =>
        new Set(
          told(receiver)
            .filter(({ event_type }) => event_type === 'create')
            .map(({ path }) => path),
        );
      await until(
        'each file is told',
        () => receiver.requests.length >= 20_000 && created().size >= 20_100,
        90_000,
      );
      await expectKept({ receiver, ledger });
    },
  );

  fault('F57 the state directory inside the watched one makes no events', { beside: true }, async (scene) => {
    const watched = scene.path('watched');
    mkdirSync(watched);
    const receiver = await HostileReceiver.start(scene, { secret: SECRET });
    const daemon = await Daemon.start(scene, {
      webhook_url: receiver.url,
      state_dir: `${watched}/state`,
      options: ['--watch-dir', watched],
    });
    const ledger = new Ledger();
    await ledger.publishMany(daemon, 20);
    writeFileSync(`${watched}/ours`, 'x');
    await tells(receiver, 'create', `${watched}/ours`);
    await expectKept({ receiver, ledger });
    expect(told(receiver).filter(({ path }) => path.startsWith(`${watched}/state`))).toEqual([]);
  });

  fault(
    'F57 changes made while the daemon was dead are told after its restart',
    { beside: true },
    async (scene) => {
      const watched = scene.path('watched');
      mkdirSync(watched);
      const { receiver, daemon } = await stage(scene, { watched });
      writeFileSync(`${watched}/kept`, '1');
      writeFileSync(`${watched}/gone`, '1');
      await tells(receiver, 'create', `${watched}/gone`);
      await tells(receiver, 'create', `${watched}/kept`);
      await daemon.stop('SIGKILL');
      rmSync(`${watched}/gone`);
      writeFileSync(`${watched}/new`, '1');
      appendFileSync(`${watched}/kept`, '2');
      await stageAgain(scene, receiver, watched);
      await tells(receiver, 'remove', `${watched}/gone`);
      await tells(receiver, 'create', `${watched}/new`);
      await tells(receiver, 'write', `${watched}/kept`);
    },
  );
});

function stageAgain(scene: Scene, receiver: HostileReceiver, watched: string): Promise<Daemon> {
  return Daemon.start(scene, { webhook_url: receiver.url, options: ['--watch-dir', watched] });
}
