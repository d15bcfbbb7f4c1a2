import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { Daemon, SECRET } from './support/daemon.ts';
import { HostileReceiver, type Received } from './support/hostile-receiver.ts';
import { expectKept } from './support/judge.ts';
import { Ledger } from './support/ledger.ts';
import { fault, type Scene } from './support/scene.ts';
import {
  bomb,
  bytes,
  close,
  drip,
  dripHead,
  endless,
  hang,
  headersOnly,
  infoFlood,
  keepAliveRace,
  large,
  reset,
  type Step,
  status,
  times,
} from './support/steps.ts';
import { until } from './support/until.ts';

const MIB = 1024 * 1024;
const ATTEMPT_TIMEOUT_MS = 1_500;
const HEAD = 'HTTP/1.1 200 OK\r\n';

interface Stage {
  receiver: HostileReceiver;
  daemon: Daemon;
  ledger: Ledger;
}

/** A daemon whose own events are delivered, so that a case's script meets its own events alone. */
async function stage(scene: Scene, options: string[] = []): Promise<Stage> {
  const receiver = await HostileReceiver.start(scene, { secret: SECRET });
  const timeout = ['--attempt-timeout-ms', String(ATTEMPT_TIMEOUT_MS)];
  const daemon = await Daemon.start(scene, { webhook_url: receiver.url, options: [...timeout, ...options] });
  await until('sandbox.ready is delivered', async () => (await daemon.sandbox()).outbox.pending === 0);
  receiver.requests.length = 0;
  return { receiver, daemon, ledger: new Ledger() };
}

describe('receiver', () => {
  fault(
    'F17 a status sequence is worked through with growing waits and the same bytes',
    { beside: true },
    async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene);
      receiver.behavePerEvent(...times(3, status(503)), status(200));
      await ledger.publish(daemon);
      await expectKept({ receiver, ledger });
      expect(receiver.requests.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
      const gaps = gapsOf(receiver.requests);
      // The third failure in a row also backs off the endpoint, whose first probe comes after half a second.
      expect(gaps[0]).toBeGreaterThan(395);
      expect(gaps[1]).toBeGreaterThan(795);
      expect(gaps[2]).toBeGreaterThan(395);
      const changing = receiver.requests.map(({ head }) => head.replace(/x-service-attempt: \d+/i, ''));
      expect(new Set(changing).size).toBe(1);
    },
  );

  for (const [codes, is_retried] of [
    [[408, 425, 429, 500, 502, 503, 504, 599], true],
    [[301, 302, 307, 308, 400, 401, 404, 410, 413, 422], false],
  ] as const) {
    fault(
      `F18 statuses ${codes.join(', ')} are ${is_retried ? 'retried' : 'terminal'}`,
      { beside: true },
      async (scene) => {
        const { receiver, daemon, ledger } = await stage(scene, ['--delivery-concurrency', '1']);
        const elsewhere = await HostileReceiver.start(scene);
        for (const code of codes) {
          receiver.behave(status(code, { headers: { location: elsewhere.url } }), status(200));
          receiver.requests.length = 0;
          await ledger.publish(daemon);
          const event_id = [...ledger.acknowledged.keys()].at(-1) as string;
          const expected = is_retried ? 'delivered' : 'failed';
          await until(`${code} is settled`, async () => (await daemon.delivery(event_id)).state === expected);
          expect(receiver.requests.length, String(code)).toBe(is_retried ? 2 : 1);
        }
        expect(elsewhere.requests).toEqual([]);
      },
    );
  }

  fault(
    'F19 Retry-After is obeyed as seconds and as a date, and junk is ignored',
    { beside: true },
    async (scene) => {
      const { receiver, daemon } = await stage(scene);
      for (const [value, from_ms, to_ms] of [
        ['2', 1_950, 4_000],
        [() => new Date(Date.now() + 3_000).toUTCString(), 1_950, 5_000],
        [() => new Date(Date.now() - 9_000).toUTCString(), 395, 1_500],
        ['soon', 395, 1_500],
        ['-5', 395, 1_500],
        ['1.5', 395, 1_500],
      ] as const) {
        const ledger = new Ledger();
        const asked = typeof value === 'string' ? value : value();
        receiver.requests.length = 0;
        receiver.behave(status(429, { headers: { 'retry-after': asked } }), status(200));
        await ledger.publish(daemon);
        await expectKept({ receiver, ledger });
        const [gap = 0] = gapsOf(receiver.requests);
        expect(gap, asked).toBeGreaterThan(from_ms);
        expect(gap, asked).toBeLessThan(to_ms);
      }
    },
  );

  fault(
    'F19 a Retry-After beyond reason is cut to an hour, and to the end of the window',
    { beside: true },
    async (scene) => {
      const hour = await stage(scene);
      hour.receiver.behave(status(503, { headers: { 'retry-after': '999999999' } }));
      await hour.ledger.publish(hour.daemon);
      const [event_id = ''] = hour.ledger.acknowledged.keys();
      const attempt = await until(
        'it was tried',
        async () => (await hour.daemon.delivery(event_id)).attempts[0],
      );
      const wait_ms = Date.parse(attempt.next_attempt_at as string) - Date.now();
      expect(wait_ms).toBeGreaterThan(3_590_000);
      expect(wait_ms).toBeLessThanOrEqual(3_600_000);
    },
  );

  fault(
    'F19 the window ends with one last attempt, whatever Retry-After asked',
    { beside: true },
    async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene, ['--delivery-window-ms', '3000']);
      receiver.behave(status(503, { headers: { 'retry-after': '3600' } }));
      await ledger.publish(daemon);
      const [event_id = ''] = ledger.acknowledged.keys();
      await until('it is expired', async () => (await daemon.delivery(event_id)).state === 'expired');
      expect(receiver.requests.length).toBe(2);
      expect(gapsOf(receiver.requests)[0]).toBeGreaterThan(2_800);
      await sleep(1_000);
      expect(receiver.requests.length).toBe(2);
    },
  );

  fault(
    'F20 an attempt that is never answered ends at its deadline and is made again',
    { beside: true },
    async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene);
      receiver.behave(hang, status(200));
      await ledger.publish(daemon);
      await expectKept({ receiver, ledger });
      const [gap = 0] = gapsOf(receiver.requests);
      expect(gap).toBeGreaterThan(ATTEMPT_TIMEOUT_MS + 350);
      expect(gap).toBeLessThan(ATTEMPT_TIMEOUT_MS + 2_000);
      const [first] = await attemptsOf(daemon, ledger);
      expect(first).toMatchObject({ status: null, error: 'timeout' });
      expect(first?.duration_ms).toBeLessThan(ATTEMPT_TIMEOUT_MS + 500);
    },
  );

  const slow_successes: [string, Step][] = [
    ['a body that drips', drip(100_000, 50)],
    ['a body without an end', endless(64 * 1024, 1)],
    ['a head without its body', headersOnly],
    ['50 MB of body', large(50)],
    ['a body that would unpack to 512 MB', bomb(512)],
    [
      'a body that is no gzip though it says so',
      bytes(`${HEAD}Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain`, 200),
    ],
    ['a body that is cut short', bytes(`${HEAD}Content-Length: 100\r\n\r\npart`, 200, 'end')],
    ['a body that is reset', bytes(`${HEAD}Content-Length: 100\r\n\r\npart`, 200, 'reset')],
    ['chunks that are none', bytes(`${HEAD}Transfer-Encoding: chunked\r\n\r\nzzz\r\n`, 200)],
  ];
  for (const [name, step] of slow_successes) {
    fault(
      `F22 F25 F27 200 with ${name} is delivered once, soon over, and small in memory`,
      { beside: true },
      async (scene) => {
        const { receiver, daemon, ledger } = await stage(scene);
        await ledger.publish(daemon);
        // What is measured is not the thread that the outbox has from its first events on.
        await until('the outbox has its thread', () => daemon.threads().includes('WorkerThread'));
        await ledger.publishMany(daemon, 100);
        await expectKept({ receiver, ledger });
        receiver.requests.length = 0;
        const before = daemon.residentBytes();
        receiver.behave(step);
        const script = new Ledger();
        await script.publishMany(daemon, 4, 4);
        await until('all are delivered', async () => (await daemon.sandbox()).outbox.pending === 0, 5_000);
        await until('the connections are closed', () => receiver.open_connections === 0, 3_000).catch(() => {
          // A body that was read to its end leaves a connection that can be used again.
          expect(name).toContain('gzip');
        });
        expect(daemon.residentBytes() - before).toBeLessThan(32 * MIB);
        await expectKept({ receiver, ledger: script });
      },
    );
  }

  fault(
    'F24 an unsolicited 100, which the library refuses, is an error of the protocol: attempts are bounded',
    { beside: true },
    async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene);
      receiver.behave(
        ...times(2, bytes(`HTTP/1.1 100 Continue\r\n\r\n${HEAD}Content-Length: 0\r\n\r\n`)),
        status(200),
      );
      await ledger.publish(daemon);
      await expectKept({ receiver, ledger });
      const attempts = await attemptsOf(daemon, ledger);
      expect(attempts.length).toBeLessThanOrEqual(3);
      for (const attempt of attempts.slice(0, -1))
        expect(attempt).toMatchObject({ status: null, error: 'protocol' });
      expect(gapsOf(receiver.requests).every((gap) => gap > 395)).toBe(true);
    },
  );

  for (const code of [102, 103]) {
    fault(`F24 interim answers ${code} before the answer are read over`, { beside: true }, async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene);
      const interim = `HTTP/1.1 ${code} X\r\n\r\n`.repeat(3);
      receiver.behave(bytes(`${interim}${HEAD}Content-Length: 0\r\n\r\n`, 200), status(200));
      await ledger.publish(daemon);
      await expectKept({ receiver, ledger });
      expect(receiver.requests.length).toBe(1);
    });
  }

  for (const [name, step, error] of [
    ['interim answers without an end', infoFlood(103, 5), 'timeout'],
    ['a head that comes a byte at a time', dripHead(5), 'timeout'],
    ['a reset after the request was read', reset, 'reset'],
    ['a close without an answer', close, 'reset'],
    ['a status line that breaks off', bytes('HTTP/1.1 20', null, 'reset'), 'reset'],
    ['a head that breaks off', bytes(`${HEAD}Content-Le`, null, 'end'), 'reset'],
    ['bytes that are no HTTP', bytes('\u0000\u0001SSH-2.0-nope\r\n\r\n'), 'protocol'],
    ['two lengths that differ', bytes(`${HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`), 'protocol'],
    [
      '64 KiB of headers',
      bytes(`${HEAD}X-Big: ${'x'.repeat(64 * 1024)}\r\nContent-Length: 0\r\n\r\n`),
      'protocol',
    ],
    [
      '10 000 headers',
      bytes(`${HEAD}${'X-Many: y\r\n'.repeat(10_000)}Content-Length: 0\r\n\r\n`),
      'protocol',
    ],
    [
      'an upgrade nobody asked for',
      bytes('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
      'protocol',
    ],
  ] as const) {
    fault(`F25 F27 ${name}: the attempt fails in time and is made again`, { beside: true }, async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene);
      // On the kept connection, which does not count, and on a new one.
      const steps = step === reset || step === close ? [step, step] : [step];
      receiver.behavePerEvent(...steps, status(200));
      await ledger.publish(daemon);
      await expectKept({ receiver, ledger });
      const [first, ...others] = await attemptsOf(daemon, ledger);
      expect(first).toMatchObject({ status: null });
      expect([error, 'protocol', 'reset']).toContain(first?.error);
      expect(first?.duration_ms).toBeLessThan(ATTEMPT_TIMEOUT_MS + 500);
      expect(others.length).toBe(1);
      expect(daemon.exit).toBeNull();
    });
  }

  fault('F22 a receiver that misbehaves for some delays no others', { beside: true }, async (scene) => {
    const { receiver, daemon } = await stage(scene, ['--attempt-timeout-ms', '60000']);
    receiver.behave(...times(8, hang), status(200));
    const stuck = new Ledger();
    await stuck.publishMany(daemon, 8, 8);
    await until('they hang', () => receiver.requests.length === 8);
    const others = new Ledger();
    await others.publishMany(daemon, 40, 4);
    await expectKept({ receiver, ledger: others });
    const delivered = receiver.delivered();
    expect([...stuck.acknowledged.keys()].filter((event_id) => delivered.has(event_id))).toEqual([]);
  });

  for (const how of ['end', 'reset'] as const) {
    fault(
      `F26 300 events over connections that the receiver closes (${how}) when they are idle`,
      { beside: true },
      async (scene) => {
        const { receiver, daemon, ledger } = await stage(scene);
        receiver.behave(keepAliveRace(how, 2));
        await ledger.publishMany(daemon, 300, 3);
        await expectKept({ receiver, ledger, may_repeat: true });
        expect((await daemon.sandbox()).outbox.failed).toBe(0);
      },
    );
  }

  fault(
    'F30 a receiver that was down is served within the backoff after its return',
    { beside: true },
    async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene);
      await receiver.down();
      await ledger.publishMany(daemon, 50, 8);
      await until(
        'the endpoint backs off',
        async () => (await daemon.metric('sandboxd_endpoint_healthy')) === 0,
      );
      const attempts_before = await attemptsMade(daemon);
      await sleep(6_000);
      // Probes after about 0.5, 1, 2 and 4 s.
      expect((await attemptsMade(daemon)) - attempts_before).toBeLessThanOrEqual(5);
      await receiver.up();
      await expectKept({ receiver, ledger });
      expect(await daemon.metric('sandboxd_endpoint_healthy')).toBe(1);
    },
  );

  fault(
    'F30 connections that are accepted and never read, or reset at once, cost one attempt each',
    { beside: true },
    async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene);
      await receiver.down();
      await receiver.up();
      receiver.welcome('ignore', 'reset', 'ignore');
      await ledger.publish(daemon);
      await expectKept({ receiver, ledger });
      const attempts = await attemptsOf(daemon, ledger);
      expect(attempts.length).toBe(4);
      expect(attempts.every(({ duration_ms }) => duration_ms < ATTEMPT_TIMEOUT_MS + 500)).toBe(true);
    },
  );

  fault(
    'F33 2 000 pending at a start and a receiver that answers 429: no flood, and all delivered',
    { timeout_ms: 180_000 },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      await receiver.down();
      const filling = await Daemon.start(scene, { webhook_url: receiver.url });
      const ledger = new Ledger();
      await ledger.publishMany(filling, 2_000, 16);
      await filling.stop('SIGKILL');
      let under_way = 0;
      let most = 0;
      const counted =
        (code: number): Step =>
        (exchange) => {
          most = Math.max(most, ++under_way);
          const answer = status(code, { headers: { 'retry-after': '1' } });
          setTimeout(() => {
            under_way -= 1;
            answer(exchange);
          }, 5);
        };
      receiver.behave(counted(429));
      await receiver.up();
      await Daemon.start(scene, { webhook_url: receiver.url, options: ['--delivery-concurrency', '8'] });
      await sleep(5_000);
      // The first eight at once, then one probe a step.
      expect(receiver.requests.length).toBeLessThanOrEqual(8 + 8);
      receiver.behave(counted(200));
      await expectKept({ receiver, ledger, within_ms: 80_000 });
      expect(most).toBeLessThanOrEqual(8);
    },
  );
});

function gapsOf(requests: Received[]): number[] {
  return requests.slice(1).map(({ at_ms }, i) => at_ms - (requests[i]?.at_ms ?? 0));
}

async function attemptsOf(daemon: Daemon, ledger: Ledger) {
  const [event_id = ''] = ledger.acknowledged.keys();
  await until('its end is on disk', async () => (await daemon.delivery(event_id)).state !== 'pending');
  return (await daemon.delivery(event_id)).attempts;
}

/** How many attempts the daemon has counted, whatever came of them. */
async function attemptsMade(daemon: Daemon): Promise<number> {
  return daemon.metric('sandboxd_delivery_duration_seconds_count');
}
