import { EventEmitter } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PassedShares, TeamConnections } from '../../../src/manager/api/team-connections.ts';
import { connectControl } from '../../../src/runtime/control-client.ts';
import { NoRuntime } from '../../../src/runtime/no-runtime.ts';
import { eventually } from '../../support/eventually.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

class FakeSocket extends EventEmitter {
  readonly remoteAddress: string;
  destroyed = false;

  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

function scene(max: number) {
  const connections = new TeamConnections(max);
  const open = (address: string) => {
    const socket = new FakeSocket(address);
    connections.add(socket as unknown as Socket);
    return socket;
  };
  const speak = (socket: FakeSocket, team_id: string) =>
    connections.requestComplete(socket as unknown as Socket, team_id);
  const answered = (socket: FakeSocket) => connections.answered(socket as unknown as Socket);
  return { open, speak, answered };
}

describe('the connections of a manager', () => {
  it('are taken from the team that holds most of them, whoever comes', () => {
    const { open, speak } = scene(100);
    const quiet = open('10.0.0.1');
    speak(quiet, 'quiet');
    const greedy = Array.from({ length: 300 }, (_, n) => {
      const socket = open(`10.1.0.${n % 200}`);
      speak(socket, 'greedy');
      return socket;
    });
    for (let n = 0; n < 20; n++) speak(open('10.0.0.2'), 'late');
    expect(quiet.destroyed).toBe(false);
    expect(greedy.filter(({ destroyed }) => !destroyed).length).toBe(79);
  });

  it('give up those without an answer under way first, the oldest of them first', () => {
    const { open, speak, answered } = scene(4);
    const [a, b, c] = ['1', '2', '3'].map((address) => {
      const socket = open(address);
      speak(socket, 'team');
      return socket;
    }) as [FakeSocket, FakeSocket, FakeSocket];
    answered(b);
    answered(c);
    open('4');
    open('5');
    expect([a, b, c].map(({ destroyed }) => destroyed)).toEqual([false, true, false]);
  });

  it('of an address that says nothing are a share of all', () => {
    const { open, speak } = scene(100);
    const silent = Array.from({ length: 90 }, () => open('10.0.0.9'));
    expect(silent.filter(({ destroyed }) => !destroyed)).toHaveLength(25);
    const spoken = Array.from({ length: 60 }, () => {
      const socket = open('10.0.0.9');
      speak(socket, 'behind a gateway');
      return socket;
    });
    expect(spoken.some(({ destroyed }) => destroyed)).toBe(false);
  });
});

describe('what is passed through', () => {
  it('is refused to a team that has its share under way, and to no other', () => {
    const shares = new PassedShares(2);
    const release = shares.acquire('a');
    shares.acquire('a');
    expect(() => shares.acquire('a')).toThrow(expect.objectContaining({ code: 'too_many_requests' }));
    shares.acquire('b');
    release();
    release();
    shares.acquire('a');
    expect(() => shares.acquire('a')).toThrow(
      expect.objectContaining({ details: expect.objectContaining({ retry_after_s: 1 }) }),
    );
  });

  it('of one team, hundreds of streams, cuts none of another’s', async () => {
    const socket_path = join(scratchFolder(), 'control.sock');
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () =>
        socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: begun\n\n'),
      );
    });
    await new Promise<void>((resolve) => server.listen(socket_path, resolve));
    onTestFinished(() => void server.close());
    class StreamingRuntime extends NoRuntime {
      override async connect() {
        return connectControl(socket_path);
      }
    }
    const running = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, {
      runtime: new StreamingRuntime() as never,
    });
    const port = Number(new URL(running.manager.url).port);
    const follow = async (team_id: string) => {
      const writer = await running.client(team_id, 'sandboxes:write');
      const id = await writer.claim();
      return () => {
        const socket = connect(port, '127.0.0.1', () =>
          socket.write(
            `GET /api/v1/sandboxes/${id}/processes/p/output?follow=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${writer.token}\r\n\r\n`,
          ),
        );
        const state = { is_begun: false, is_closed: false };
        socket.on('data', (bytes) => {
          state.is_begun ||= String(bytes).includes('begun');
        });
        socket.on('error', () => {});
        socket.on('close', () => {
          state.is_closed = true;
        });
        onTestFinished(() => void socket.destroy());
        return state;
      };
    };
    const other = (await follow('team_other'))();
    await eventually(() => expect(other.is_begun).toBe(true));
    const greedy = await follow('team_greedy');
    const streams = Array.from({ length: 400 }, () => greedy());
    await eventually(() => expect(streams.filter(({ is_begun }) => is_begun).length).toBe(400), {
      timeout: 60_000,
    });
    expect(other.is_closed).toBe(false);
    expect(streams.filter(({ is_closed }) => is_closed)).toEqual([]);
  });
});
