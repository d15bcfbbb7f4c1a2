import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { SocketHeartbeat } from '../../../src/daemon/api/socket-heartbeat.ts';
import { ManualClock } from '../../support/manual-clock.ts';

class Peer extends EventEmitter {
  readonly OPEN = 1;
  readyState = 1;
  isPaused = false;
  bufferedAmount = 0;
  pings = 0;
  is_cut = false;
  ping() {
    this.pings += 1;
  }
  terminate() {
    this.is_cut = true;
  }
}

function connect() {
  const clock = new ManualClock();
  const peer = new Peer();
  const heartbeat = new SocketHeartbeat(clock, peer as unknown as WebSocket);
  return { clock, peer, heartbeat };
}

describe('a client', () => {
  it('that answers is pinged every 15 s, for ever', async () => {
    const { clock, peer, heartbeat } = connect();
    for (let beats = 1; beats <= 20; beats++) {
      await clock.advance(15_000);
      expect(peer.pings).toBe(beats);
      peer.emit('pong');
    }
    expect(peer.is_cut).toBe(false);
    heartbeat.stop();
    expect(clock.timers).toBe(0);
  });

  it('that answers no ping in two intervals is cut', async () => {
    const { clock, peer } = connect();
    await clock.advance(44_999);
    expect([peer.pings, peer.is_cut]).toEqual([2, false]);
    await clock.advance(1);
    expect(peer.is_cut).toBe(true);
    expect(clock.timers).toBe(0);
  });

  it('that sends frames, takes what waits, or is not read is alive', async () => {
    const { clock, peer } = connect();
    await clock.advance(30_000);
    peer.emit('message', Buffer.from('x'));
    await clock.advance(30_000);
    peer.isPaused = true;
    await clock.advance(60_000);
    peer.isPaused = false;
    peer.emit('pong');
    peer.bufferedAmount = 1_000_000;
    for (let beats = 0; beats < 10; beats++) {
      await clock.advance(15_000);
      peer.bufferedAmount -= 1_000;
    }
    expect(peer.is_cut).toBe(false);
  });

  it('is not cut by a stop of the whole program: its answers are read after the timers', async () => {
    const { clock, peer } = connect();
    await clock.advance(30_000);
    clock.freeze(3_600_000);
    await clock.advance(10_000);
    expect(peer.is_cut).toBe(false);
    peer.emit('pong');
    await clock.advance(30_000);
    expect(peer.is_cut).toBe(false);
  });
});
