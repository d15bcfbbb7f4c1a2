import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { Daemon } from './support/daemon.ts';
import { fault, type Scene } from './support/scene.ts';
import type { Need } from './support/tools.ts';
import { until } from './support/until.ts';

const FAR = 'http://127.0.0.1:9/';

describe('files and modes', () => {
  fault('F45 whatever the umask, everything is for the owner alone', { beside: true }, async (scene) => {
    const daemon = await Daemon.start(scene, {
      webhook_url: FAR,
      through: ['sh', '-c', 'umask 000 && exec "$0" "$@"'],
      socket_path: scene.path('control.sock'),
    });
    await daemon.publish({});
    await daemon.run(['sh', '-c', 'echo out; echo err >&2'], { process_id: 'writer' });
    await daemon.ask('/api/v1/sandbox/env', {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: '{"env":{"A":"b"}}',
    });
    await until('it has ended', async () => {
      const { json } = await daemon.ask('/api/v1/processes/writer');
      return (json?.data as { exited_at?: string } | undefined)?.exited_at;
    });
    const wrong = everythingIn(daemon.state_dir).filter(
      ({ path, mode }) => mode !== (statSync(path).isDirectory() ? 0o700 : 0o600),
    );
    expect(wrong).toEqual([]);
    expect(statSync(scene.path('control.sock')).mode & 0o777).toBe(0o600);
  });

  const plants: [name: string, needs: Need[], plant: (state_dir: string, scene: Scene) => void][] = [
    [
      'the state directory is a link',
      [],
      (state_dir, scene) => {
        mkdirSync(scene.path('elsewhere'), { mode: 0o700 });
        symlinkSync(scene.path('elsewhere'), state_dir);
      },
    ],
    ['the state directory is a file', [], (state_dir) => writeFileSync(state_dir, '')],
    [
      'everybody may write to the state directory',
      [],
      (state_dir) => {
        mkdirSync(state_dir);
        chmodSync(state_dir, 0o777);
      },
    ],
    [
      "the state directory is somebody else's",
      ['root'],
      (state_dir) => {
        mkdirSync(state_dir, { mode: 0o700 });
        chownSync(state_dir, 65_534, 65_534);
      },
    ],
    ...['outbox.db', 'outbox.db-wal', 'lock', 'control-token', 'high-water'].flatMap(
      (file): typeof plants => [
        [
          `${file} is a link`,
          [],
          (state_dir, scene) => {
            mkdirSync(state_dir, { mode: 0o700 });
            writeFileSync(scene.path('victim'), 'untouched');
            symlinkSync(scene.path('victim'), join(state_dir, file));
          },
        ],
        [
          `${file} has a second name`,
          [],
          (state_dir, scene) => {
            mkdirSync(state_dir, { mode: 0o700 });
            writeFileSync(scene.path('victim'), 'untouched');
            linkSync(scene.path('victim'), join(state_dir, file));
          },
        ],
      ],
    ),
    [
      "outbox.db is somebody else's",
      ['root'],
      (state_dir) => {
        mkdirSync(state_dir, { mode: 0o700 });
        writeFileSync(join(state_dir, 'outbox.db'), '');
        chownSync(join(state_dir, 'outbox.db'), 65_534, 65_534);
      },
    ],
    [
      'outbox.db is a directory',
      [],
      (state_dir) => mkdirSync(join(state_dir, 'outbox.db'), { recursive: true, mode: 0o700 }),
    ],
  ];
  for (const [name, needs, plant] of plants) {
    fault(
      `F45 ${name}: the start is refused with one line, and nothing is written`,
      { needs, beside: true },
      async (scene) => {
        const state_dir = scene.path('state');
        plant(state_dir, scene);
        const daemon = await Daemon.start(scene, { webhook_url: FAR, state_dir, until: 'nothing' });
        expect(await daemon.ended()).toEqual({ code: 1, signal: null });
        expect(daemon.stderr).toEqual([expect.stringMatching(/^sandboxd: /)]);
        for (const file of readdirSync(scene.folder).filter((each) => each === 'victim')) {
          expect(readFileSync(scene.path(file), 'utf8')).toBe('untouched');
        }
      },
    );
  }

  fault('F45 files that others could read are closed to them', { beside: true }, async (scene) => {
    const first = await Daemon.start(scene, { webhook_url: FAR });
    await first.stop('SIGKILL');
    for (const { path } of everythingIn(first.state_dir))
      if (!statSync(path).isDirectory()) chmodSync(path, 0o644);
    chmodSync(first.state_dir, 0o755);
    await Daemon.start(scene, { webhook_url: FAR });
    const open = ['outbox.db', 'outbox.db-wal', 'lock', 'control-token', 'high-water'].filter(
      (file) => (statSync(join(first.state_dir, file)).mode & 0o077) !== 0,
    );
    expect(open).toEqual([]);
    expect(statSync(first.state_dir).mode & 0o777).toBe(0o700);
  });

  fault(
    'F45 a process of another user can neither read the state nor use the token',
    { needs: ['root', 'setpriv'], beside: true },
    async (scene) => {
      chmodSync(scene.folder, 0o755);
      const daemon = await Daemon.start(scene, { webhook_url: FAR });
      const command = [
        'setpriv',
        '--reuid=65534',
        '--clear-groups',
        'sh',
        '-c',
        `cat ${daemon.state_dir}/control-token ${daemon.state_dir}/outbox.db`,
      ];
      await daemon.run(command, { process_id: 'curious' });
      const { json } = await daemon.ask('/api/v1/processes/curious/wait?timeout_ms=10000');
      expect(json?.data).toMatchObject({ state: 'exited', exit_code: expect.any(Number) });
      expect(json?.data).not.toMatchObject({ exit_code: 0 });
      for (const path of [
        '/api/v1/sandbox',
        '/api/v1/processes',
        '/api/v1/webhook/deliveries',
        '/api/v1/events/stream',
      ]) {
        const answer = await daemon.ask(path, { headers: { authorization: '' } });
        expect(answer.status, path).toBe(401);
      }
    },
  );
});

function everythingIn(folder: string): { path: string; mode: number }[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isFIFO() || entry.isSocket()) return [];
    const own = { path, mode: statSync(path).mode & 0o777 };
    return entry.isDirectory() ? [own, ...everythingIn(path)] : [own];
  });
}
