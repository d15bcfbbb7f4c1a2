import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { type LocalRecord, SandboxFiles } from '../../../src/runtime/local/sandbox-files.ts';
import { scratchFolder } from '../../support/scratch.ts';

const RECORD: LocalRecord = {
  ...{ sandbox_id: 'sbx-1', team_id: 'team_1', memory_mib: 256, cpu_millis: 100, watch_dir: null },
  ...{ program_version: '1', state: 'creating', outcome: null, is_paused: false, daemon: null },
};

function files(): SandboxFiles {
  const data_dir = scratchFolder();
  const data_dir_fd = openSync(data_dir, 'r');
  onTestFinished(() => closeSync(data_dir_fd));
  mkdirSync(join(data_dir, 'sbx-1'));
  return new SandboxFiles(data_dir, data_dir_fd, 'sbx-1');
}

it('a record is replaced as a whole and readable to its owner alone', () => {
  const sandbox = files();
  expect(sandbox.readRecord()).toBeNull();
  sandbox.writeRecord(RECORD);
  expect(sandbox.readRecord()).toEqual(RECORD);
  // As an interrupted write leaves it.
  writeFileSync(join(sandbox.directory, 'sandbox.json.new'), '{"sandbox_id":"sb', { mode: 0o600 });
  expect(sandbox.readRecord()).toEqual(RECORD);
  sandbox.writeRecord({ ...RECORD, state: 'created' });
  expect(sandbox.readRecord()).toEqual({ ...RECORD, state: 'created' });
  expect(readdirSync(sandbox.directory)).toEqual(['sandbox.json']);
  expect(statSync(join(sandbox.directory, 'sandbox.json')).mode & 0o777).toBe(0o600);
});

it('a record that cannot be read is not taken for a missing one', () => {
  const sandbox = files();
  writeFileSync(join(sandbox.directory, 'sandbox.json'), '');
  expect(() => sandbox.readRecord()).toThrow();
});

it('the log of a daemon is appended to, and emptied only if it is longer than 4 MiB', () => {
  const sandbox = files();
  sandbox.trimLog();
  expect(sandbox.lastLogLine()).toContain('ENOENT');
  for (const line of ['one\n', 'two\n']) {
    const log = sandbox.openLog();
    writeSync(log, line);
    closeSync(log);
  }
  expect(readFileSync(sandbox.log, 'utf8')).toBe('one\ntwo\n');
  expect(statSync(sandbox.log).mode & 0o777).toBe(0o600);
  expect(sandbox.lastLogLine()).toBe('two');
  truncateSync(sandbox.log, 4 * 1024 * 1024);
  sandbox.trimLog();
  expect(statSync(sandbox.log).size).toBe(4 * 1024 * 1024);
  truncateSync(sandbox.log, 4 * 1024 * 1024 + 1);
  sandbox.trimLog();
  expect(statSync(sandbox.log).size).toBe(0);
});

it('the address of a socket is short, however long the path of the data directory is', () => {
  const sandbox = new SandboxFiles(`/${'long/'.repeat(100)}`, 1_000_000, `sbx_${'0'.repeat(36)}`);
  expect(sandbox.control_socket.length).toBeGreaterThan(500);
  expect(sandbox.socket_address.length).toBeLessThan(107);
});
