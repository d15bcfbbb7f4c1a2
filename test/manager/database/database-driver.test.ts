import { describe, expect, it, onTestFinished } from 'vitest';
import { CuttingProxy, type Moment } from '../../support/cutting-proxy.ts';
import { eventually } from '../../support/eventually.ts';
import { Client } from '../../support/manager/manager-client.ts';
import { optionsOf, postgres, tokenOf } from '../../support/manager/postgres-manager.ts';
import { ManagerProgram } from '../../support/manager-program.ts';
import { postgresPrograms } from '../../support/postgres.ts';

const SANDBOXES = '/api/v1/sandboxes';
const MOMENTS: Moment[] = ['before', 'after'];
const WEBHOOK = { webhook: { url: 'http://127.0.0.1:9/', secret: 's' } };
/** More than any of the calls takes. */
const STATEMENTS_MAX = 40;
const SETTLED = { timeout: 60_000, interval: 200 };

async function scene() {
  const server = await postgres();
  const database = await server.database();
  const proxy = await CuttingProxy.start(database);
  const token = await tokenOf(database);
  const program = await ManagerProgram.start(optionsOf(proxy.urlOf(database)));
  onTestFinished(async () => {
    await program.end('SIGKILL');
    proxy.stop();
  });
  const team = new Client(() => program.url, token);
  return { server, database, proxy, program, team };
}

/** Makes a call again and again, cut before and after each of its statements; `prepare` comes before the call. */
async function cutEverywhere<Subject>(
  proxy: CuttingProxy,
  prepare: (name: string) => Promise<Subject>,
  call: (subject: Subject) => Promise<void>,
): Promise<number> {
  let cuts = 0;
  for (const moment of MOMENTS) {
    for (let n = 1; n <= STATEMENTS_MAX; n++) {
      const subject = await prepare(`${moment}-${n}`);
      proxy.cutAt(n, moment);
      await call(subject);
      if (!proxy.disarm()) break;
      cuts += 1;
    }
  }
  return cuts;
}

describe.skipIf(postgresPrograms() === null)('connections to PostgreSQL that break in use', () => {
  it('before or after any statement of a claim make it 503 and leave one sandbox per key', async () => {
    const { proxy, program, team } = await scene();
    const keys: string[] = [];
    const prepare = async (key: string) => {
      keys.push(key);
      return key;
    };
    const cuts = await cutEverywhere(proxy, prepare, async (key) => {
      const { status, error } = await team.post(SANDBOXES, {}, { 'idempotency-key': key });
      if (status !== 201) expect([status, error?.code]).toEqual([503, 'unavailable']);
    });
    expect(cuts).toBeGreaterThan(8);
    const ids = await Promise.all(
      keys.map((key) =>
        eventually(async () => {
          const { status, data } = await team.post(SANDBOXES, {}, { 'idempotency-key': key });
          expect(status).toBe(201);
          return data.sandbox_id as string;
        }, SETTLED),
      ),
    );
    expect(new Set(ids).size).toBe(keys.length);
    await eventually(async () => {
      const { data } = await team.get(`${SANDBOXES}?limit=200`);
      expect(data.sandboxes.map(({ id }: { id: string }) => id).sort()).toEqual(ids.sort());
    }, SETTLED);
    expect(program.child.exitCode).toBeNull();
  });

  it('before or after any statement of a deletion make it 503, and each deletion gives exactly one event', async () => {
    const { proxy, program, team } = await scene();
    const ids: string[] = [];
    const prepare = async () => {
      const id = await eventually(() => team.claim(WEBHOOK), SETTLED);
      ids.push(id);
      return id;
    };
    const cuts = await cutEverywhere(proxy, prepare, async (id) => {
      const { status, error } = await team.call('DELETE', `${SANDBOXES}/${id}`);
      if (status !== 202) expect([status, error?.code]).toEqual([503, 'unavailable']);
    });
    expect(cuts).toBeGreaterThan(4);
    for (const id of ids) {
      await eventually(async () => {
        const { status } = await team.call('DELETE', `${SANDBOXES}/${id}`);
        expect(status).toBe(404);
      }, SETTLED);
    }
    const { data } = await team.get('/api/v1/webhooks/deliveries?limit=200');
    const told = data.deliveries.map(({ sandbox_id }: { sandbox_id: string }) => sandbox_id);
    expect(told.sort()).toEqual(ids.sort());
    expect(program.child.exitCode).toBeNull();
  });

  it('because the server restarts end no replica', async () => {
    const { server, program, team } = await scene();
    let is_over = false;
    const calling = Array.from({ length: 6 }, async () => {
      while (!is_over) {
        const { status, data } = await team.post(SANDBOXES, { config: WEBHOOK });
        expect([201, 503]).toContain(status);
        if (status !== 201) continue;
        expect([202, 503]).toContain((await team.call('DELETE', `${SANDBOXES}/${data.sandbox_id}`)).status);
      }
    });
    for (let round = 0; round < 3; round++) {
      await server.end();
      await server.begin();
      await eventually(async () => expect((await team.get('/readyz')).status).toBe(200), SETTLED);
    }
    is_over = true;
    await Promise.all(calling);
    expect(program.child.exitCode).toBeNull();
  });
});
