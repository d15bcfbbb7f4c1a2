import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Tunnels } from '../../src/daemon/tunnels.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { scratchFolder } from '../support/scratch.ts';

const SWITCHED =
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: sandboxd-egress\r\n\r\n';
const CONNECT = 'CONNECT consumer.example:80 HTTP/1.1\r\n';

/** The manager's end of a tunnel. */
class End {
  readonly socket: Socket;
  text = '';
  is_closed = false;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('close', () => {
      this.is_closed = true;
    });
    socket.setEncoding('latin1').on('data', (text: string) => {
      this.text += text;
    });
  }

  async received(text: string): Promise<void> {
    await eventually(() => expect(this.text).toContain(text));
  }
}

async function start() {
  const clock = new ManualClock();
  const tunnels = new Tunnels(clock);
  const path = join(scratchFolder(), 'socket');
  const server = createServer({ allowHalfOpen: true });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const ends: End[] = [];
  onTestFinished(async () => {
    await tunnels.stop();
    for (const { socket } of ends) socket.destroy();
    server.close();
  });
  const add = async (): Promise<End> => {
    const accepted = once(server, 'connection');
    const end = new End(connect(path));
    ends.push(end);
    tunnels.add((await accepted)[0] as Socket);
    await end.received(SWITCHED);
    return end;
  };
  return { clock, tunnels, add };
}

describe('a connection through the manager', () => {
  it('waits for a tunnel for 5 s', async () => {
    const { clock, tunnels, add } = await start();
    const given_up = tunnels.open('consumer.example:80').catch((error) => error.attempt_error);
    await clock.advance(4_999);
    const in_time = tunnels.open('consumer.example:80');
    await clock.advance(1);
    expect(await given_up).toBe('connect');
    const end = await add();
    await end.received(CONNECT);
    // What the consumer says at once comes with the answer.
    end.socket.write('HTTP/1.1 200 OK\r\n\r\nhello');
    const [first] = await once((await in_time).setEncoding('latin1'), 'data');
    expect(first).toBe('hello');
    expect(clock.timers).toBe(0);
  });

  it('waits for the answer a second longer than the manager takes to connect', async () => {
    const { clock, tunnels, add } = await start();
    const end = await add();
    const opened = tunnels.open('consumer.example:80').catch((error) => error.attempt_error);
    await end.received(CONNECT);
    await clock.advance(5_999);
    expect(end.is_closed).toBe(false);
    await clock.advance(1);
    expect(await opened).toBe('connect');
    await eventually(() => expect(end.is_closed).toBe(true));
  });

  it.each([
    [
      'blocked',
      'HTTP/1.1 403 No\r\nProxy-Status: sandbox-manager; error=destination_ip_prohibited; details=""\r\n\r\n',
    ],
    ['connect', 'HTTP/1.1 502 Bad Gateway\r\n\r\n'],
    ['connect', 'no HTTP\r\n\r\n'],
  ])('fails with %s as the manager answers', async (error, answer) => {
    const { clock, tunnels, add } = await start();
    const end = await add();
    const opened = tunnels.open('consumer.example:80').catch((failed) => failed.attempt_error);
    await end.received(CONNECT);
    end.socket.write(answer);
    expect(await opened).toBe(error);
    await eventually(() => expect(end.is_closed).toBe(true));
    expect(clock.timers).toBe(0);
  });
});

describe('idle tunnels', () => {
  it('are used one after the other, and never one that has ended or speaks unasked', async () => {
    const { tunnels, add } = await start();
    const [ended, speaking, one, two] = [await add(), await add(), await add(), await add()];
    ended.socket.end();
    speaking.socket.write('hello');
    await eventually(() => expect([ended.is_closed, speaking.is_closed]).toEqual([true, true]));
    void tunnels.open('consumer.example:80').catch(() => {});
    await one.received(CONNECT);
    void tunnels.open('consumer.example:80').catch(() => {});
    await two.received(CONNECT);
  });

  it('are 16 at most', async () => {
    const { tunnels, add } = await start();
    for (let i = 0; i < 16; i++) {
      tunnels.checkRoom();
      await add();
    }
    expect(() => tunnels.checkRoom()).toThrow(expect.objectContaining({ code: 'too_many_requests' }));
    void tunnels.open('consumer.example:80').catch(() => {});
    tunnels.checkRoom();
  });

  it('are closed at the end, when no connection waits or can be made any more', async () => {
    const { clock, tunnels } = await start();
    const waiting = tunnels.open('consumer.example:80').catch((error) => error.attempt_error);
    await tunnels.stop();
    expect(await waiting).toBe('connect');
    await expect(tunnels.open('consumer.example:80')).rejects.toMatchObject({ attempt_error: 'connect' });
    expect(clock.timers).toBe(0);
    const other = await start();
    const idle = await other.add();
    await other.tunnels.stop();
    await eventually(() => expect(idle.is_closed).toBe(true));
  });
});
