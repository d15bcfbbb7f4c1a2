import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { copyRootfs } from '../../../src/runtime/disk/copy.ts';
import { prepareRootfs, STATE_DIR } from '../../../src/runtime/rootfs.ts';
import { type Consumer, startConsumer } from '../../support/consumer.ts';
import { eventually } from '../../support/eventually.ts';
import { Sandboxes, SECRET, spec, undeliveredRecord, webhook } from '../../support/runtime/sandboxes.ts';
import { scratchFolder } from '../../support/scratch.ts';

/** A receiver that takes what is of one sandbox and refuses all others. */
async function consumerOf(sandbox_id: string): Promise<Consumer> {
  const consumer = await startConsumer();
  consumer.answer = ({ body }, response) =>
    response.writeHead(JSON.parse(body).sandbox_id === sandbox_id ? 204 : 503).end();
  return consumer;
}

const delivered = (consumer: Consumer, sandbox_id: string) =>
  consumer.deliveries.filter(({ body }) => JSON.parse(body).sandbox_id === sandbox_id);

describe('a fork', () => {
  it('is paused, has the files of its source, its own identity, and sets what its source left aside', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    const consumer = await consumerOf('sbx-child');
    await runtime.create(spec('sbx-parent', { ...webhook(consumer.url, '/work'), env: { MODE: 'parent' } }));
    await sandboxes.output(
      'sbx-parent',
      'mkdir -p /work/deep; echo data > /work/deep/file; ln -s file /work/deep/link; chmod 640 /work/deep/file',
    );
    await sandboxes.ask('sbx-parent', 'POST', '/webhook/publish', { payload: { of: 'parent' } });
    const parent_before = await eventually(async () => {
      const view = await sandboxes.ask('sbx-parent', 'GET', '/sandbox');
      expect(view.outbox.pending).toBeGreaterThan(3);
      return view;
    });

    const child = spec('sbx-child', { ...webhook(consumer.url, '/work'), env: { MODE: 'parent' } });
    const forked = await runtime.fork('sbx-parent', child);
    expect(forked).toEqual({
      outcome: 'created',
      pod_name: expect.stringContaining('sbx-child'),
      persistence: 'root',
    });
    expect(await runtime.inspect('sbx-child')).toBe('paused');
    expect(await runtime.inspect('sbx-parent')).toBe('running');

    const view = await sandboxes.ask('sbx-child', 'GET', '/sandbox');
    expect(view).toMatchObject({ sandbox_id: 'sbx-child', team_id: 'team_1', state: 'paused' });
    expect(view.outbox.foreign).toBeGreaterThanOrEqual(parent_before.outbox.pending);
    expect(view.outbox.pending).toBe(0);
    expect(readFileSync(sandboxes.rootfs('sbx-child', 'work/deep/file'), 'utf8')).toBe('data\n');
    expect(statSync(sandboxes.rootfs('sbx-child', 'work/deep/file')).mode & 0o777).toBe(0o640);
    expect(readlinkSync(sandboxes.rootfs('sbx-child', 'work/deep/link'))).toBe('file');
    expect(lstatSync(sandboxes.rootfs('sbx-child', 'var/lib/sandboxd')).mode & 0o777).toBe(0o700);
    expect(readdirSync(sandboxes.rootfs('sbx-parent', 'var/lib/sandboxd'))).not.toContain('outbox-copy.db');

    await runtime.resume('sbx-child', null);
    expect(await sandboxes.output('sbx-child', 'cat /work/deep/file; echo $MODE')).toBe('data\nparent');
    await sandboxes.output('sbx-child', 'echo more > /work/deep/more');
    await consumer.arrival('sandbox.resumed');
    const own = delivered(consumer, 'sbx-child');
    expect(own.slice(0, 3).map(({ event }) => [event.event_type, event.sequence])).toEqual([
      ['sandbox.ready', 1],
      ['sandbox.paused', 2],
      ['sandbox.resumed', 3],
    ]);
    expect(consumer.unsigned(SECRET)).toEqual([]);
    expect(await sandboxes.output('sbx-parent', 'ls /work/deep')).not.toContain('more');
    const of_parent = new Set(delivered(consumer, 'sbx-parent').map(({ event }) => event.event_type));
    expect(of_parent).not.toContain('sandbox.paused');
    expect(of_parent).not.toContain('sandbox.resumed');

    await runtime.end('sbx-child');
    const left = await undeliveredRecord(runtime, 'sbx-child');
    expect(left.records.every(({ body }) => JSON.parse(body).sandbox_id === 'sbx-child')).toBe(true);
    expect(left.records.at(-1)?.event_type).toBe('sandbox.killed');
  });

  it('copies while nothing moves: a counter is consistent, and continues in the source', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    await runtime.create(spec('sbx-1'));
    const shell = 'while :; do echo >> /root/a; echo >> /root/b; done';
    await sandboxes.ask('sbx-1', 'POST', '/processes', { shell, process_id: 'counter' });
    const size = (sandbox_id: string, name: string) =>
      statSync(sandboxes.rootfs(sandbox_id, `root/${name}`), { throwIfNoEntry: false })?.size ?? 0;
    const counted = () => size('sbx-1', 'b');
    await eventually(() => expect(counted()).toBeGreaterThan(100));
    await sandboxes.output('sbx-1', 'head -c 20000000 /dev/urandom > /root/filler');
    await runtime.fork('sbx-1', spec('sbx-2'));
    expect(size('sbx-2', 'b')).toBeGreaterThan(100);
    expect(size('sbx-2', 'a') - size('sbx-2', 'b')).toBeOneOf([0, 1]);
    expect(statSync(sandboxes.rootfs('sbx-2', 'root/filler')).size).toBe(20_000_000);
    const after = counted();
    await eventually(() => expect(counted()).toBeGreaterThan(after));
    expect(await sandboxes.ask('sbx-2', 'GET', '/processes')).toEqual({ processes: [], next_cursor: null });
  });

  it('of a paused sandbox leaves the source paused', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    await runtime.create(spec('sbx-1'));
    await runtime.pause('sbx-1', null);
    await runtime.fork('sbx-1', spec('sbx-2'));
    expect(await runtime.inspect('sbx-1')).toBe('paused');
    expect(await runtime.inspect('sbx-2')).toBe('paused');
  });

  it('follows no link, and loads nothing, that was planted in the place of what the runtime makes', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    await runtime.create(spec('sbx-1'));
    // As a process of the sandbox could have left them, had it found a way.
    for (const path of ['etc', 'opt', 'lib64']) {
      renameSync(sandboxes.rootfs('sbx-1', path), sandboxes.rootfs('sbx-1', `${path}-moved`));
      symlinkSync('/root', sandboxes.rootfs('sbx-1', path));
    }
    await runtime.fork('sbx-1', spec('sbx-2'));
    const planted = sandboxes.rootfs('sbx-2', 'etc');
    writeFileSync(join(planted, 'ld.so.preload'), '/root/evil.so\n');
    writeFileSync(join(planted, 'not-on-the-host'), '');
    // Node and the daemon's libraries would stop, or obey, on reading these.
    for (const path of [
      'package.json',
      'opt/package.json',
      'root/package.json',
      'etc/svc.conf',
      'etc/gai.conf',
    ]) {
      rmSync(sandboxes.rootfs('sbx-2', path), { force: true });
      writeFileSync(sandboxes.rootfs('sbx-2', path), 'planted');
    }
    await runtime.fork('sbx-2', spec('sbx-3'));
    await runtime.resume('sbx-3', null);
    expect(await sandboxes.output('sbx-3', 'cat /etc/passwd')).toContain('root:x:0:0');
    expect(await sandboxes.output('sbx-3', 'ls /etc/not-on-the-host; cat /etc/ld.so.preload')).toBe(
      '/etc/not-on-the-host',
    );
    expect(await sandboxes.output('sbx-3', 'cat /etc/svc.conf; grep planted /etc/gai.conf; true')).toBe('');
    expect(lstatSync(sandboxes.rootfs('sbx-3', 'etc')).isDirectory()).toBe(true);
    expect(lstatSync(sandboxes.rootfs('sbx-3', 'lib64')).isDirectory()).toBe(true);
  });

  it('that fails leaves nothing behind and the source as it was', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    const consumer = await startConsumer();
    await runtime.create(spec('sbx-1', webhook(consumer.url)));
    const bad = spec('sbx-2', webhook(consumer.url, '/etc/passwd'));
    await expect(runtime.fork('sbx-1', bad)).rejects.toMatchObject({ code: 'invalid_request' });
    expect(await runtime.list()).toEqual(['sbx-1']);
    expect(await runtime.inspect('sbx-1')).toBe('running');
    expect(await sandboxes.output('sbx-1', 'echo on')).toBe('on');
    expect(delivered(consumer, 'sbx-2')).toEqual([]);
    expect(await runtime.fork('sbx-9', spec('sbx-2'))).toEqual({ outcome: 'unknown' });
  });
});

describe('a root that changes while it is copied', () => {
  function changing() {
    const folder = scratchFolder();
    const [source, target, outside] = ['source', 'target', 'outside'].map((name) => join(folder, name));
    prepareRootfs(source as string, 'sbx-1', null);
    mkdirSync(join(outside as string, 'lib'), { recursive: true });
    writeFileSync(join(outside as string, 'secret'), "the host's");
    const state_dir = openSync(join(source as string, STATE_DIR), constants.O_RDONLY);
    onTestFinished(() => closeSync(state_dir));
    const paths = { source, target, outside } as Record<'source' | 'target' | 'outside', string>;
    return { ...paths, state_dir, copy: join(paths.source, STATE_DIR, 'outbox-copy.db') };
  }

  it('makes nothing outside the copy where a link has taken the place of a folder', async () => {
    const { source, target, outside, state_dir, copy } = changing();
    writeFileSync(copy, 'outbox');
    renameSync(join(source, 'var'), join(source, 'moved'));
    symlinkSync(outside, join(source, 'var'));
    await copyRootfs(source, state_dir, target, null);
    expect(readdirSync(join(outside, 'lib'))).toEqual([]);
    expect(readFileSync(join(target, STATE_DIR, 'outbox.db'), 'utf8')).toBe('outbox');
    expect(lstatSync(join(target, 'var')).isDirectory()).toBe(true);
  });

  it('gives away no file of the host where a link has taken the place of the outbox', async () => {
    const { source, target, outside, state_dir, copy } = changing();
    symlinkSync(join(outside, 'secret'), copy);
    await expect(copyRootfs(source, state_dir, target, null)).rejects.toMatchObject({ code: 'ELOOP' });
    expect(readdirSync(join(target, STATE_DIR))).toEqual([]);
    rmSync(copy);
    execFileSync('mkfifo', [copy]);
    await expect(copyRootfs(source, state_dir, target, null)).rejects.toThrow('lost its outbox');
  });

  it('is copied with a bounded part of the memory of the host', async () => {
    const { source, target, outside, state_dir } = changing();
    writeFileSync(join(outside, 'tar'), '#!/bin/sh\necho may have $(ulimit -v) KiB >&2; exit 1\n', {
      mode: 0o755,
    });
    vi.stubEnv('PATH', `${outside}:${process.env.PATH}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    await expect(copyRootfs(source, state_dir, target, null)).rejects.toThrow('may have 524288 KiB');
  });
});
