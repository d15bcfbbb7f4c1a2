import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { daemonAt } from '../../src/ctl/api/clients.ts';
import { findDaemon } from '../../src/ctl/api/config.ts';
import { watchDeliveries } from '../../src/ctl/deliveries.ts';
import { run, start } from '../support/ctl/sandboxctl.ts';
import { pipe, screen } from '../support/ctl/screen.ts';
import { delivery, StandInDaemon, succeed } from '../support/ctl/stand-in-daemon.ts';
import { eventually } from '../support/eventually.ts';

const daemon = new StandInDaemon();
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  env = { SANDBOXD_URL: await daemon.start() };
});

afterAll(() => daemon.stop());

const REFUSED = 'connection refused (ECONNREFUSED 127.0.0.1:9)';
const PAGE = [
  delivery(12, {
    ...{ state: 'pending', finished_at: null, next_attempt_at: '2026-01-01T00:05:00.000Z' },
    ...{ last_status: null, last_error: 'connect', last_error_detail: REFUSED },
  }),
  delivery(11, { event_type: 'process.started' }),
];

beforeEach(() => {
  daemon.received.length = 0;
  daemon.on('GET /webhook/deliveries', (_, response) => {
    succeed(response, 200, { deliveries: PAGE, next_cursor: null });
  });
});

describe('sandboxctl deliveries', () => {
  it('prints a table', async () => {
    const { code, stdout } = await run(['deliveries'], env);
    expect(code).toBe(0);
    const [titles, ...rows] = stdout.trimEnd().split('\n');
    expect(titles).toMatch(/^SEQUENCE +AGE +EVENT TYPE +STATE +ATTEMPTS +NEXT +EVENT ID +LAST RESULT$/);
    expect(rows[0]).toMatch(
      /^12 +\d+ d +agent.event +pending +2 +0 s +evt_\S+12 +connection refused \(EC.*:9\)$/,
    );
    expect(rows[1]).toMatch(/^11 +\d+ d +process.started +delivered +2 +- +evt_\S+11 +204$/);
  });

  it('asks for what it is asked for', async () => {
    await run(['deliveries', '--state', 'failed', '--event-type', 'file.modified', '--limit', '5'], env);
    expect(daemon.received.map(({ url }) => url)).toEqual([
      '/api/v1/webhook/deliveries?state=failed&event_type=file.modified&limit=5',
    ]);
  });

  it('follows the cursor until it has as many as it was asked for', async () => {
    daemon.on('GET /webhook/deliveries', ({ url }, response) => {
      const query = new URL(url, 'http://localhost').searchParams;
      const [first, count] = query.get('cursor') === 'next' ? [1_000, 500] : [2_000, 1_000];
      expect(query.get('limit')).toBe(String(count));
      const page = Array.from({ length: count }, (_, index) => delivery(first - index));
      succeed(response, 200, { deliveries: page, next_cursor: count === 1_000 ? 'next' : 'more' });
    });
    const { code, stdout } = await run(['deliveries', '--limit', '1500', '--json'], env);
    expect(code).toBe(0);
    const page = JSON.parse(stdout);
    expect(page.deliveries.map(({ sequence }: { sequence: number }) => sequence)).toEqual(
      Array.from({ length: 1_500 }, (_, index) => 2_000 - index),
    );
    expect(page.next_cursor).toBe('more');
  });

  it('says that there are none on stderr alone', async () => {
    daemon.on('GET /webhook/deliveries', (_, response) => {
      succeed(response, 200, { deliveries: [], next_cursor: null });
    });
    expect(await run(['deliveries'], env)).toEqual({ code: 0, stdout: '', stderr: 'no deliveries\n' });
  });
});

describe('sandboxctl deliveries --watch', () => {
  it('prints each record that is new or has changed, oldest first, and ends with 0 when interrupted', async () => {
    const watching = start(['deliveries', '--watch', '--json'], env);
    await watching.wrote(/000000000012/);
    const delivered = delivery(12);
    daemon.on('GET /webhook/deliveries', (_, response) => {
      succeed(response, 200, { deliveries: [delivery(13), delivered, PAGE[1]], next_cursor: null });
    });
    await watching.wrote(/000000000013/);
    const { code, stdout } = await watching.ended('SIGINT');
    expect(code).toBe(0);
    const printed = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(printed).toEqual([PAGE[1], PAGE[0], delivered, delivery(13)]);
  });

  it('outlives a restart of the daemon', async () => {
    const watching = start(['deliveries', '--watch'], env);
    await watching.wrote(/^SEQUENCE .*\n11 .*\n12 /);
    daemon.on('GET /webhook/deliveries', (_, response) => void response.destroy());
    await watching.wrote(/cannot reach the daemon .* retrying/);
    daemon.on('GET /webhook/deliveries', (_, response) => {
      succeed(response, 200, { deliveries: [delivery(13), ...PAGE], next_cursor: null });
    });
    await watching.wrote(/\n13 /);
    expect((await watching.ended('SIGTERM')).code).toBe(0);
  });

  it('shows the table as it stands on a terminal', async () => {
    const { out, text } = screen(80);
    const { address, token } = findDaemon({}, env);
    const interrupted = new AbortController();
    const ended = watchDeliveries(
      { out, err: pipe().out, json: false, shown: '', sandbox: daemonAt(address, token).daemon.sandbox },
      { limit: 100 },
      interrupted.signal,
    );
    await eventually(() => expect(daemon.received).toHaveLength(2), { timeout: 60_000 });
    interrupted.abort();
    expect(await ended).toBe(0);
    expect(text().split('\u001b[2J\u001b[H')[1]).toMatch(
      /^AGE .*\n.* agent.event .*\n.* process.started .*\n$/,
    );
    expect(daemon.received[0]?.url).toContain('limit=22');
  });
});
