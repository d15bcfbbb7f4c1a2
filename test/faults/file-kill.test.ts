import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type ClientRequest, request } from 'node:http';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { Daemon } from './support/daemon.ts';
import { fault } from './support/scene.ts';
import { until } from './support/until.ts';

const KILLS = 15;
const UPLOADS_EACH = 4;
const SIZE_BYTES = 2 * 1024 * 1024;
const PIECE_BYTES = 64 * 1024;
/** The kill may also come in the sync, the move, or the answer: some time after the last byte. */
const STEPS_MAX = 3 * (SIZE_BYTES / PIECE_BYTES);

const contentOf = (version: number) => Buffer.alloc(SIZE_BYTES, `version ${version} `);

describe('kill -9', () => {
  fault(
    'in sixty uploads at random moments leaves the old or the new file each time, and nothing else',
    { timeout_ms: 600_000 },
    async (scene) => {
      const folder = scene.path('files');
      mkdirSync(join(folder, 'deep/tree'), { recursive: true });
      for (let i = 0; i < 20; i++)
        writeFileSync(join(folder, 'deep/tree', `f${i}`), Buffer.alloc(200_000, 'x'));
      const names = Array.from({ length: UPLOADS_EACH }, (_, i) => join(folder, `file-${i}`));
      const present = names.map(() => 0);
      for (const name of names) writeFileSync(name, contentOf(0));
      const settings = { webhook_url: 'http://127.0.0.1:9/', options: ['--watch-dir', folder] };
      const told = { old: 0, new: 0, under_way: 0 };
      for (let version = 1; version <= KILLS; version++) {
        const daemon = await Daemon.start(scene, settings);
        // What carries out the uploads takes a while to start.
        await daemon.ask(`/api/v1/files/stat?path=${encodeURIComponent(folder)}`);
        const answered = new Set<number>();
        const content = contentOf(version);
        const uploads = names.map((path, i) => {
          const sent = put(daemon, path);
          sent.once('response', ({ statusCode }) => {
            if (statusCode === 200) answered.add(i);
          });
          return sent;
        });
        const copy = { source: join(folder, 'deep'), destination: join(folder, `copy-${version}`) };
        const copied = daemon
          .ask('/api/v1/files/copy', {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(copy),
          })
          .catch(() => null);
        const kill_at = Math.floor(Math.random() * STEPS_MAX);
        for (let step = 0; step < kill_at; step++) {
          const start = step * PIECE_BYTES;
          const piece = content.subarray(start, start + PIECE_BYTES);
          for (const sent of uploads) {
            if (piece.length > 0) sent.write(piece);
            if (start + PIECE_BYTES === SIZE_BYTES) sent.end();
          }
          // As long as the daemon takes for something else.
          await daemon.ask('/healthz');
        }
        told.under_way += readdirSync(folder).filter(isTemporary).length;
        await daemon.stop('SIGKILL');
        await copied;
        for (const sent of uploads) sent.destroy();

        const next = await Daemon.start(scene, settings);
        for (const [i, name] of names.entries()) {
          const found = readFileSync(name);
          const is_new = found.equals(content);
          expect(
            is_new || found.equals(contentOf(present[i] as number)),
            `${name} is neither old nor new`,
          ).toBe(true);
          if (answered.has(i)) expect(is_new, `${name} was acknowledged`).toBe(true);
          if (is_new) present[i] = version;
          told[is_new ? 'new' : 'old'] += 1;
        }
        const journals = join(next.state_dir, 'files');
        await until('what was left is removed', () => {
          const left = readdirSync(folder, { recursive: true }).map(String).filter(isTemporary);
          const noted = existsSync(journals) ? readdirSync(journals, { recursive: true }) : [];
          return (
            left.length === 0 && noted.every((name) => name === 'uploads' || /\.sock$/.test(String(name)))
          );
        });
        await next.stop('SIGKILL');
      }
      // Both ends were met, and the kill found uploads under way.
      expect(told).toEqual({
        old: expect.any(Number),
        new: expect.any(Number),
        under_way: expect.any(Number),
      });
      for (const count of Object.values(told)) expect(count).toBeGreaterThan(0);
      const last = await Daemon.start(scene, settings);
      const names_told = new Set<string>();
      await until('the changes are told', async () => {
        for (const path of await changedPaths(last)) names_told.add(path);
        return names_told.has(names[0] as string);
      });
      expect([...names_told].filter((path) => path.split('/').some(isTemporary))).toEqual([]);
    },
  );
});

function put(daemon: Daemon, path: string): ClientRequest {
  const token = readFileSync(join(daemon.state_dir, 'control-token'), 'utf8').trim();
  const sent = request(`${daemon.url}/api/v1/files?path=${encodeURIComponent(path)}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token}`, 'content-length': SIZE_BYTES },
    agent: false,
  });
  sent.on('error', () => {});
  return sent;
}

async function changedPaths(daemon: Daemon): Promise<string[]> {
  const list = await daemon.ask('/api/v1/webhook/deliveries?event_type=file.modified&limit=1000');
  const { deliveries } = (list.json as { data: unknown }).data as { deliveries: { event_id: string }[] };
  const bodies = deliveries.map(
    async ({ event_id }) => JSON.parse((await daemon.delivery(event_id)).body).payload,
  );
  return (await Promise.all(bodies)).flatMap(({ path, old_path }) => [path, old_path].filter(Boolean));
}

function isTemporary(name: string): boolean {
  return name.includes('.sandboxd-');
}
