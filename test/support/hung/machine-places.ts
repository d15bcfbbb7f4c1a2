import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { atOnce, type Place, type Stage } from './place.ts';

/** The daemon in a mount namespace in which files of the mount lie over others. */
function over(files: Record<string, string>) {
  return ({ mount }: Stage) => {
    const binds = Object.entries(files).map(([path, name]) => `mount --bind ${mount.path}/${name} ${path}`);
    return { through: ['unshare', '--mount', 'sh', '-c', `${binds.join(' && ')} && exec "$@"`, 'sh'] };
  };
}

const text = (content: string) => ({ text: content, mode: 0o644 });
const ACCOUNTS = (home: string) =>
  text(`root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:${home}:/usr/sbin/nologin\n`);
const GROUPS = text('root:x:0:\nnogroup:x:65534:\n');
const asNobody = { command: ['true'], user: 'nobody' };

/** Files of the machine, directories that are watched, and what the daemon is started with. */
export const MACHINE_PLACES: Place[] = [
  {
    name: '/etc/passwd, and the start as an account',
    files: { passwd: ACCOUNTS('/nonexistent') },
    launch: over({ '/etc/passwd': 'passwd' }),
    touch: (scene) => atOnce(scene, 'POST', '/processes', asNobody),
  },
  {
    name: '/etc/passwd, and files of an account',
    files: { passwd: ACCOUNTS('/nonexistent') },
    launch: over({ '/etc/passwd': 'passwd' }),
    touch: (scene) => atOnce(scene, 'GET', '/files/stat?user=nobody&path=/usr'),
  },
  {
    name: '/etc/passwd, and the names of owners',
    files: { passwd: ACCOUNTS('/nonexistent') },
    launch: over({ '/etc/passwd': 'passwd' }),
    touch: (scene) => atOnce(scene, 'GET', '/files/stat?path=/usr'),
    // Names of accounts are a courtesy.
    answers: [200, 503],
  },
  {
    name: '/etc/group',
    files: { group: GROUPS },
    launch: over({ '/etc/group': 'group' }),
    touch: (scene) => atOnce(scene, 'POST', '/processes', asNobody),
  },
  {
    name: 'home of an account',
    files: { 'home/.profile': text('') },
    launch: ({ mount, folder }) => {
      writeFileSync(join(folder, 'passwd'), ACCOUNTS(`${mount.path}/home`).text);
      const bind = `mount --bind ${folder}/passwd /etc/passwd && exec "$@"`;
      return { through: ['unshare', '--mount', 'sh', '-c', bind, 'sh'] };
    },
    touch: (scene) => atOnce(scene, 'POST', '/processes', asNobody),
    answers: [201, 503],
  },
  {
    name: '/etc/passwd at the start, for --process-user',
    files: { passwd: ACCOUNTS('/nonexistent') },
    launch: (stage) => ({ ...over({ '/etc/passwd': 'passwd' })(stage), args: ['--process-user', 'nobody'] }),
    touch: (scene) => atOnce(scene, 'POST', '/processes', { command: ['true'] }),
    is_account: true,
  },
  {
    name: '/etc/resolv.conf',
    files: { 'resolv.conf': text('nameserver 127.0.0.1\n') },
    launch: over({ '/etc/resolv.conf': 'resolv.conf' }),
  },
  {
    name: '/etc/hosts',
    files: { hosts: text('127.0.0.1 localhost\n') },
    launch: over({ '/etc/hosts': 'hosts' }),
  },
  {
    name: '/etc/nsswitch.conf',
    files: { 'nsswitch.conf': text('hosts: files dns\n') },
    launch: over({ '/etc/nsswitch.conf': 'nsswitch.conf' }),
  },
  {
    name: '/etc/hosts, /etc/resolv.conf and /etc/nsswitch.conf from the start',
    files: {
      hosts: text('127.0.0.1 localhost\n'),
      'resolv.conf': text(''),
      'nsswitch.conf': text('hosts: files\n'),
    },
    launch: over({
      '/etc/hosts': 'hosts',
      '/etc/resolv.conf': 'resolv.conf',
      '/etc/nsswitch.conf': 'nsswitch.conf',
    }),
    hangs_at_start: true,
  },
  {
    name: 'watch_dir',
    launch: ({ mount }) => ({ args: ['--watch-dir', join(mount.path, 'dir')] }),
  },
  {
    name: 'watch_dir from the start',
    launch: ({ mount }) => ({ args: ['--watch-dir', join(mount.path, 'dir')] }),
    hangs_at_start: true,
  },
  {
    name: 'watch_dir behind a link',
    launch: ({ mount, folder }) => {
      symlinkSync(mount.path, join(folder, 'link'));
      return { args: ['--watch-dir', join(folder, 'link/dir')] };
    },
  },
  {
    name: 'watch_dir behind a link from the start',
    launch: ({ mount, folder }) => {
      symlinkSync(mount.path, join(folder, 'link'));
      return { args: ['--watch-dir', join(folder, 'link/dir')] };
    },
    hangs_at_start: true,
  },
  {
    name: 'a directory in watch_dir',
    launch: ({ mount, folder }) => {
      const watched = join(folder, 'watched');
      mkdirSync(join(watched, 'mounted'), { recursive: true });
      const bind = `mount --bind ${mount.path} ${watched}/mounted && exec "$@"`;
      return {
        through: ['unshare', '--mount', 'sh', '-c', bind, 'sh'],
        args: ['--watch-dir', watched],
      };
    },
  },
  {
    name: 'NODE_EXTRA_CA_CERTS',
    files: { 'ca.pem': text('') },
    launch: ({ mount }) => ({ env: { NODE_EXTRA_CA_CERTS: `${mount.path}/ca.pem` } }),
  },
  {
    name: 'NODE_EXTRA_CA_CERTS at the start',
    files: { 'ca.pem': text('') },
    launch: ({ mount }) => ({ env: { NODE_EXTRA_CA_CERTS: `${mount.path}/ca.pem` } }),
    hangs_at_start: true,
    is_start: true,
  },
  {
    name: '--webhook-secret-file at the start',
    files: { secret: text('secret') },
    launch: ({ mount }) => ({ args: ['--webhook-secret-file', `${mount.path}/secret`] }),
    hangs_at_start: true,
    is_start: true,
  },
];
