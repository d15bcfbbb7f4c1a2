import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run, start } from '../support/ctl/sandboxctl.ts';
import { delivery, eventBody, refuse, StandInDaemon, succeed } from '../support/ctl/stand-in-daemon.ts';
import { eventually } from '../support/eventually.ts';

let daemon: StandInDaemon;
let env: NodeJS.ProcessEnv;
let newest: number;
let streams: { since: string | undefined; response: ServerResponse }[];

/** Streams what is after Last-Event-ID, then what a test sends. */
beforeEach(async () => {
  daemon = new StandInDaemon();
  env = { SANDBOXD_URL: await daemon.start() };
  newest = 3;
  streams = [];
  daemon.on('GET /webhook/deliveries', (_, response) => {
    const kept = newest > 0 ? [delivery(newest)] : [];
    // What another sandbox left has its own sequence.
    succeed(response, 200, {
      deliveries: [delivery(99, { state: 'foreign' }), ...kept],
      next_cursor: null,
    });
  });
  daemon.on('GET /events/stream', ({ headers }, response) => {
    const since = headers['last-event-id'] as string | undefined;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(': welcome\n\n');
    streams.push({ since, response });
    for (let sequence = Number(since ?? newest) + 1; sequence <= newest; sequence++) send(response, sequence);
  });
});

afterEach(() => daemon.stop());

function send(
  response: ServerResponse,
  sequence: number,
  payload = `{"step":${sequence},\n"price":1.10}`,
): void {
  const data = eventBody(sequence, payload)
    .split('\n')
    .map((line) => `data: ${line}\n`);
  response.write(`id: ${sequence}\nevent: agent.event\n${data.join('')}\n`);
}

describe('sandboxctl events', () => {
  it('prints what is kept, one event a line, and ends', async () => {
    const { code, stdout, stderr } = await run(['events'], env);
    expect([code, stderr]).toEqual([0, '']);
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(3);
    expect(lines[2]).toBe(
      `00:00:00.000 #3    agent.event     {"step":3, "price":1.10} ${delivery(3).event_id}`,
    );
  });

  it('prints the body as it is, on one line, as JSON', async () => {
    const { stdout } = await run(['events', '--json', '--since', '2'], env);
    expect(stdout).toBe(`${eventBody(3, '{"step":3, "price":1.10}')}\n`);
    expect(streams.map(({ since }) => since)).toEqual(['2']);
  });

  it('prints nothing where nothing is kept', async () => {
    newest = 0;
    expect(await run(['events'], env)).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  it('fails with 3 where the stream ends too early', async () => {
    daemon.on('GET /events/stream', (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end();
    });
    const { code, stderr } = await run(['events'], env);
    expect([code, stderr]).toEqual([3, expect.stringMatching(/ended the stream before event #3\n$/)]);
  });
});

describe('sandboxctl events -f', () => {
  it('starts from now on, goes on after a lost connection where it ended, and ends with 0 when interrupted', async () => {
    const following = start(['events', '-f', '--json'], env);
    await untilStreams(following, 1);
    send(streams[0]?.response as ServerResponse, 4);
    await following.wrote(/"sequence":4/);
    newest = 6;
    daemon.dropConnections();
    await following.wrote(/connection lost; retrying/);
    await following.wrote(/"sequence":6/);
    expect(streams.map(({ since }) => since)).toEqual(['3', '4']);
    const { code, stdout } = await following.ended('SIGINT');
    expect(code).toBe(0);
    const sequences = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).sequence);
    expect(sequences).toEqual([4, 5, 6]);
  });

  it('starts after the sequence it is given', async () => {
    const following = start(['events', '--follow', '--since', '0'], env);
    await following.wrote(/#1 .*\n.*#2 .*\n.*#3 /);
    expect((await following.ended('SIGTERM')).code).toBe(0);
  });

  it('waits for a daemon that is shutting down, but not for one that refuses it', async () => {
    const following = start(['events', '-f'], env);
    await untilStreams(following, 1);
    daemon.on('GET /events/stream', (_, response) => {
      daemon.on('GET /events/stream', (_, later) =>
        refuse(later, 401, 'unauthorized', 'A token is required.'),
      );
      refuse(response, 503, 'shutting_down', 'The server is shutting down.');
    });
    daemon.dropConnections();
    const { code, stderr } = await following.ended();
    expect(code).toBe(1);
    expect(stderr).toMatch(/^connection lost; retrying\nsandboxctl: A token is required\. .*\n$/);
  });

  async function untilStreams(following: ReturnType<typeof start>, count: number): Promise<void> {
    await eventually(() => expect(streams, following.stderr()).toHaveLength(count), { timeout: 60_000 });
  }
});
