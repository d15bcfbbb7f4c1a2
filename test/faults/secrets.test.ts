import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { ask } from './support/ask.ts';
import { Daemon } from './support/daemon.ts';
import { HostileReceiver } from './support/hostile-receiver.ts';
import { expectKept } from './support/judge.ts';
import { Ledger } from './support/ledger.ts';
import { fault, type Scene } from './support/scene.ts';
import { status } from './support/steps.ts';
import { until } from './support/until.ts';

const CANARY = 'canary-b1f0c7-never-to-be-seen';

/** The ways in which a daemon is given its secret. */
const WAYS: [name: string, give: (scene: Scene) => { options?: string[]; env?: Record<string, string> }][] = [
  [
    'a file',
    (scene) => {
      writeFileSync(scene.path('secret-file'), `${CANARY}\n`, { mode: 0o600 });
      return { options: ['--webhook-secret-file', scene.path('secret-file')] };
    },
  ],
  ['the environment', () => ({ env: { SANDBOXD_WEBHOOK_SECRET: CANARY } })],
  ['the command line', () => ({ options: ['--webhook-secret', CANARY] })],
  ['the command line in one word', () => ({ options: [`--webhook-secret=${CANARY}`] })],
];

describe('secrets', () => {
  for (const [name, give] of WAYS) {
    fault(
      `a secret from ${name} is in no log, answer, figure, event, file, process list or environment`,
      { needs: ['a look into daemons'], beside: true },
      async (scene) => {
        const receiver = await HostileReceiver.start(scene, { secret: CANARY });
        receiver.behave(status(503), status(200));
        const { options = [], env = {} } = give(scene);
        const daemon = await Daemon.start(scene, {
          webhook_url: receiver.url,
          secret: '',
          options: [...options, '--log-level', 'trace', '--shutdown-grace-ms', '3000'],
          env,
        });
        const ledger = new Ledger();
        await ledger.publishMany(daemon, 3);
        await expectKept({ receiver, ledger });
        await daemon.run(['sh', '-c', 'env; cat /proc/self/environ; tr "\\0" "\\n" < /proc/$PPID/cmdline'], {
          process_id: 'nosy',
        });
        await daemon.ask('/api/v1/processes/nosy/wait?timeout_ms=10000');

        expect(processFile(daemon, 'cmdline')).not.toContain(CANARY);
        expect(processFile(daemon, 'environ')).not.toContain(CANARY);
        for (const thread of readdirSync(`/proc/${daemon.pid}/task`)) {
          expect(processFile(daemon, `task/${thread}/cmdline`)).not.toContain(CANARY);
        }
        const answers = await Promise.all(
          [
            ...[
              '/api/v1/sandbox',
              '/api/v1/webhook/deliveries',
              '/api/v1/processes',
              '/readyz',
              '/healthz',
              '/metrics',
            ],
            ...[
              `/api/v1/webhook/deliveries/${[...ledger.acknowledged.keys()][0]}`,
              '/nowhere',
              '/api/v1/processes/nosy',
            ],
          ].map((path) => daemon.ask(path)),
        );
        const output = await daemon.ask('/api/v1/processes/nosy/output?stream=stdout', {
          headers: { accept: 'application/octet-stream' },
        });
        expect(output.text).toContain('PATH=');
        for (const { text, headers } of [...answers, output])
          expect(`${text}${JSON.stringify(headers)}`).not.toContain(CANARY);
        const invalid = await ask(`${daemon.url}/api/v1/webhook/publish`, { method: 'POST', body: CANARY });
        expect(invalid.text).not.toContain(CANARY);
        for (const { head, body } of receiver.requests) expect(`${head}${body}`).not.toContain(CANARY);

        await daemon.stop('SIGTERM');
        expect(daemon.stderr.join('\n')).not.toContain(CANARY);
        expect(daemon.stdout).not.toContain(CANARY);
        expect(filesHolding(daemon.state_dir, CANARY)).toEqual([]);
      },
    );
  }

  fault(
    'a daemon that dies of a signal leaves no core dump with the secret in it',
    { needs: ['prlimit'], beside: true },
    async (scene) => {
      const pattern = readFileSync('/proc/sys/kernel/core_pattern', 'utf8').trim();
      const receiver = await HostileReceiver.start(scene, { secret: CANARY });
      const daemon = await Daemon.start(scene, {
        webhook_url: receiver.url,
        secret: CANARY,
        through: ['sh', '-c', `cd ${scene.folder} && exec prlimit --core=unlimited "$0" "$@"`],
      });
      await daemon.publish({});
      daemon.signal('SIGSEGV');
      await daemon.ended();
      const holding = filesHolding(scene.folder, CANARY);
      expect(holding).toEqual([]);
      if (pattern.startsWith('/')) {
        const folder = join(pattern, '..');
        const fresh = readdirSync(folder).filter((name) => name.includes(String(daemon.pid)));
        expect(fresh.filter((name) => readFileSync(join(folder, name)).includes(CANARY))).toEqual([]);
      }
    },
  );

  fault('SIGUSR1 opens no inspector', { needs: ['a look into daemons'], beside: true }, async (scene) => {
    const daemon = await Daemon.start(scene, { webhook_url: 'http://127.0.0.1:9/' });
    daemon.signal('SIGUSR1');
    expect((await daemon.publish({})).status).toBe(202);
    await until('it goes on', async () => (await ask(`${daemon.url}/healthz`)).status === 200);
    expect(daemon.stderr.join('\n')).not.toMatch(/debugger|inspector/i);
    expect(listeningPortsOf(daemon)).toEqual([daemon.port]);
  });
});

function processFile(daemon: Daemon, name: string): string {
  return readFileSync(`/proc/${daemon.pid}/${name}`, 'latin1');
}

function filesHolding(folder: string, text: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name !== 'secret-file')
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => statSync(path).size > 0 && readFileSync(path).includes(text));
}

/** The TCP ports on which a daemon's own sockets listen. */
function listeningPortsOf(daemon: Daemon): number[] {
  const sockets = new Set(
    readdirSync(`/proc/${daemon.pid}/fd`).flatMap((fd) => {
      try {
        return statSync(`/proc/${daemon.pid}/fd/${fd}`).ino;
      } catch {
        return [];
      }
    }),
  );
  const ports = ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${daemon.pid}/net/${table}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === '0A' && sockets.has(Number(fields[9])))
      .map((fields) => Number.parseInt(fields[1]?.split(':')[1] ?? '', 16)),
  );
  return [...new Set(ports)];
}
