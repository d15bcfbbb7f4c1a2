import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { LocalDaemon } from '../../../support/daemon/local-daemon.ts';
import { eventually } from '../../../support/eventually.ts';
import { IS_ROOT } from '../../../support/rights.ts';
import { scratchFolder } from '../../../support/scratch.ts';

let daemon: LocalDaemon;
let folder: string;

beforeEach(async () => {
  daemon = await LocalDaemon.start();
  folder = scratchFolder();
  chmodSync(folder, 0o755);
});

// biome-ignore lint/suspicious/noExplicitAny: what the API sends is what a test looks at.
type Message = any;

/** A client that notes what it gets. */
async function connect(query = '') {
  const socket = new WebSocket(`${daemon.url.replace('http', 'ws')}/files/watch${query}`, {
    headers: daemon.authorization,
  });
  onTestFinished(() => socket.terminate());
  const messages: Message[] = [];
  socket.on('message', (data) => messages.push(JSON.parse(String(data))));
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const send = (frame: object | string) =>
    socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame));
  const subscribe = async (path: string, recursive: boolean): Promise<string> => {
    const known = messages.length;
    send({ action: 'subscribe', path, recursive });
    await eventually(() => expect(messages.slice(known).map(({ type }) => type)).toContain('subscribed'));
    return messages.slice(known).find(({ type }) => type === 'subscribed').watch_id;
  };
  const events = (watch_id: string) =>
    messages
      .filter((each) => each.type === 'event' && each.watch_id === watch_id)
      .map(({ event, path, old_path }) => (old_path ? [event, path, old_path] : [event, path]));
  return { socket, messages, send, subscribe, events };
}

describe('/files/watch', () => {
  it('tells each subscription what changes below its path, as the path was named', async () => {
    mkdirSync(join(folder, 'real/sub'), { recursive: true });
    symlinkSync('real', join(folder, 'link'));
    const { subscribe, events, send, messages } = await connect();
    const all = await subscribe(join(folder, 'link/'), true);
    const flat = await subscribe(join(folder, 'real'), false);
    const [via, real] = [join(folder, 'link'), join(folder, 'real')];
    writeFileSync(join(real, 'file'), '');
    await eventually(() =>
      expect([events(all), events(flat)]).toEqual([
        [['create', join(via, 'file')]],
        [['create', join(real, 'file')]],
      ]),
    );
    renameSync(join(real, 'file'), join(real, 'sub/file'));
    await eventually(() =>
      expect([events(all).at(-1), events(flat).at(-1)]).toEqual([
        ['rename', join(via, 'sub/file'), join(via, 'file')],
        ['remove', join(real, 'file')],
      ]),
    );
    send({ action: 'unsubscribe', watch_id: flat });
    await eventually(() => expect(messages.at(-1)).toEqual({ type: 'unsubscribed', watch_id: flat }));
    rmSync(join(real, 'sub/file'));
    await eventually(() => expect(events(all).at(-1)).toEqual(['remove', join(via, 'sub/file')]));
    expect(events(flat)).toHaveLength(2);
  });

  it('watches a directory whose name is not UTF-8, by its bytes', async () => {
    const bytes = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x64, 0xff])]);
    mkdirSync(bytes);
    const { send, messages } = await connect();
    const path_base64 = bytes.toString('base64');
    for (const recursive of [true, false]) send({ action: 'subscribe', path_base64, recursive });
    await eventually(() => expect(messages).toHaveLength(2));
    expect(messages[0]).toMatchObject({ type: 'subscribed', path: `${folder}/d\ufffd`, path_base64 });
    const file = Buffer.concat([bytes, Buffer.from('/file')]);
    writeFileSync(file, '');
    await eventually(() => expect(messages).toHaveLength(4));
    expect(messages.slice(2).map(({ event, path_base64 }) => [event, path_base64])).toEqual(
      Array(2).fill(['create', file.toString('base64')]),
    );
  });

  it('answers what it cannot do with an error that names the field', async () => {
    const { send, messages } = await connect();
    const frames: [frame: object | string, code: string, field?: string][] = [
      ['{', 'invalid_request', 'frame'],
      ['[]', 'invalid_request', 'frame'],
      [{ action: 'x' }, 'invalid_request', 'action'],
      [{ action: 'subscribe' }, 'invalid_request', 'path'],
      [{ action: 'subscribe', path: 1 }, 'invalid_request', 'path'],
      [{ action: 'subscribe', path: '/tmp', recursive: 'yes' }, 'invalid_request', 'recursive'],
      [{ action: 'subscribe', path: '/tmp', more: 1 }, 'invalid_request', 'more'],
      [{ action: 'subscribe', path: join(folder, 'none') }, 'not_found'],
      [{ action: 'subscribe', path: '/etc/passwd' }, 'not_a_directory'],
      [{ action: 'subscribe', path: daemon.daemon.config.state_dir }, 'forbidden'],
      [{ action: 'unsubscribe', watch_id: 'x' }, 'not_found', 'watch_id'],
    ];
    for (const [frame] of frames) send(frame);
    await eventually(() => expect(messages).toHaveLength(frames.length));
    expect(messages.map(({ type, error }) => [type, error.code, error.details?.field])).toEqual(
      frames.map(([, code, field]) => ['error', code, field]),
    );
    expect((await daemon.ask('/files/watch')).error.details?.field).toBe('Upgrade');
  });

  it.runIf(IS_ROOT)('watches with the rights of an account', async () => {
    const { subscribe, events, send, messages } = await connect('?user=nobody');
    const watch_id = await subscribe(folder, true);
    writeFileSync(join(folder, 'file'), '');
    await eventually(() => expect(events(watch_id)).toEqual([['create', join(folder, 'file')]]));
    const locked = join(folder, 'locked');
    mkdirSync(locked, { mode: 0o700 });
    send({ action: 'subscribe', path: join(locked, 'x'), recursive: true });
    await eventually(() => {
      expect(messages.find(({ type }) => type === 'error')?.error.code).toBe('permission_denied');
    });
  });
});
