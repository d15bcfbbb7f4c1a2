import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import { atOnce, call, dataOf, type Place, type Scene } from './place.ts';

const PROCESSES = '/processes';

/** Starts of a process, which one way or another touch the mount. */
function starts(name: string, body: (scene: Scene) => unknown, more: Partial<Place> = {}): Place {
  return { name, touch: (scene) => atOnce(scene, 'POST', PROCESSES, body(scene)), ...more };
}

async function started(scene: Scene, body: object): Promise<string> {
  const answer = await call(scene, 'POST', PROCESSES, { body });
  if (answer.status !== 201) throw new Error(`it did not start: ${answer.text}`);
  return String(dataOf(answer).process_id);
}

/** Everything that the start of a process looks at, and what processes do later. */
export const PROCESS_PLACES: Place[] = [
  starts('cwd', ({ mount }) => ({ command: ['true'], cwd: join(mount.path, 'dir') })),
  starts('cwd, of another account', ({ mount }) => ({
    ...{ command: ['true'], cwd: join(mount.path, 'dir'), user: 'nobody' },
  })),
  starts('cwd, of a terminal', ({ mount }) => ({
    ...{ command: ['true'], cwd: join(mount.path, 'dir'), pty: { cols: 80, rows: 24 } },
  })),
  starts('PATH entry', ({ mount }) => ({
    ...{ command: ['no-such-program'], env: { PATH: `${mount.path}/dir:/usr/bin:/bin` } },
  })),
  starts('program', ({ mount }) => ({ command: [join(mount.path, 'program')] })),
  starts(
    'program behind a link',
    ({ mount, folder }) => ({
      command: ['sh', '-c', `ln -sf ${mount.path}/program ${folder}/link; exec ${folder}/link`],
    }),
    {
      // The shell that executes it is what hangs.
      answers: [201],
    },
  ),
  starts('interpreter', ({ folder }) => ({ command: [join(folder, 'script')] }), {
    prepare: async ({ mount, folder }) => {
      writeFileSync(join(folder, 'script'), `#!${mount.path}/program\n`, { mode: 0o755 });
    },
  }),
  starts('script of a shell that runs', ({ mount }) => ({ command: ['/bin/sh', `${mount.path}/program`] }), {
    answers: [201],
  }),
  starts('output of a process', ({ mount }) => ({ shell: `exec ls ${mount.path}/dir >${mount.path}/file` }), {
    answers: [201],
  }),
  {
    name: 'cwd of a context',
    touch: (scene) =>
      atOnce(scene, 'POST', '/contexts', {
        ...{ type: 'cmd', cmd: { command: ['true'] }, cwd: join(scene.mount.path, 'dir') },
      }),
  },
  {
    name: 'program of a restart',
    prepare: async (scene) => {
      const restart = { policy: 'always', backoff_ms: 50 };
      const id = await started(scene, { command: [join(scene.mount.path, 'program')], restart });
      await eventually(async () => {
        const { restart_count } = dataOf(await call(scene, 'GET', `${PROCESSES}/${id}`));
        if (!restart_count) throw new Error('no restart');
      });
    },
  },
  {
    name: 'cwd of a process that runs, and is ended',
    prepare: async (scene) => {
      await started(scene, {
        command: ['sleep', '1000'],
        cwd: join(scene.mount.path, 'dir'),
        process_id: 'p',
      });
    },
    touch: (scene) => [
      call(scene, 'GET', `${PROCESSES}/p`),
      call(scene, 'DELETE', `${PROCESSES}/p?grace_ms=100`),
    ],
    answers: [200],
  },
  {
    name: 'core dump',
    prepare: async (scene) => {
      const shell = 'ulimit -c unlimited; exec sleep 1000';
      await started(scene, { shell, cwd: join(scene.mount.path, 'dir'), process_id: 'p' });
    },
    touch: (scene) => [call(scene, 'POST', `${PROCESSES}/p/signal`, { body: { signal: 'SIGSEGV' } })],
    answers: [204],
  },
  {
    name: 'reads of a process that is to end',
    prepare: async (scene) => {
      const shell = `while :; do cat ${scene.mount.path}/file >/dev/null; done`;
      await started(scene, { shell, process_id: 'p' });
    },
    touch: (scene) => [call(scene, 'DELETE', `${PROCESSES}/p?grace_ms=100`)],
    // What waits in the kernel cannot be ended.
    answers: [200, 408, 503],
  },
  {
    name: 'HOME for processes',
    touch: (scene) => [
      call(scene, 'PUT', '/sandbox/env', {
        body: { env: { HOME: scene.mount.path, TMPDIR: scene.mount.path } },
      }),
    ],
    answers: [200],
  },
  {
    name: 'cwd of the daemon and of its main command',
    launch: ({ mount }) => ({
      ...{ cwd: join(mount.path, 'dir') },
      args: ['--restart', 'always', '--', 'sh', '-c', 'sleep 0.2; exit 1'],
    }),
    exit_codes: [1],
  },
  {
    name: 'TMPDIR and HOME of the daemon',
    launch: ({ mount }) => ({ env: { TMPDIR: `${mount.path}/dir`, HOME: `${mount.path}/dir` } }),
    hangs_at_start: true,
  },
  {
    name: 'PATH of the daemon',
    launch: ({ mount }) => ({ env: { PATH: `/usr/bin:/bin:${mount.path}/dir` } }),
    touch: (scene) => atOnce(scene, 'POST', PROCESSES, { command: ['no-such-program'] }),
  },
];

/** What makes others wait who only ask about a process: not to be tried beside other tests. */
export const TABLE_PLACES: Place[] = [
  {
    // The kernel closes it while others who ask about the process wait for that.
    name: 'a file that is closed as programs become others',
    prepare: async (scene) => {
      const script = 'open F, "<", $ARGV[0]; while (! -e $ARGV[1]) { sleep 1 } exec "sleep", "1000"';
      for (const process_id of ['p', 'q', 'r', 's', 't', 'u', 'v', 'w']) {
        const command = ['perl', '-e', script, join(scene.mount.path, 'file'), join(scene.folder, 'go')];
        await started(scene, { command, process_id });
      }
    },
    touch: (scene) => {
      writeFileSync(join(scene.folder, 'go'), '');
      return [
        call(scene, 'GET', PROCESSES),
        call(scene, 'GET', `${PROCESSES}/p`),
        call(scene, 'DELETE', `${PROCESSES}/p?grace_ms=100`),
      ];
    },
    // What waits in the kernel cannot be ended.
    answers: [200, 408, 503],
  },
];
