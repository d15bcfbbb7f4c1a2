import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openSeal, Seal } from '../../../src/manager/database/seal.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

describe('a seal', () => {
  const seal = new Seal(Buffer.alloc(32, 1));

  it('opens what it sealed, in its place alone', () => {
    const sealed = seal.seal('a secret: ü', 'here');
    expect(sealed).not.toContain('secret');
    expect(seal.seal('a secret: ü', 'here')).not.toBe(sealed);
    expect(seal.open(sealed, 'here')).toBe('a secret: ü');
    expect(() => seal.open(sealed, 'there')).toThrow();
    expect(() => new Seal(Buffer.alloc(32, 2)).open(sealed, 'here')).toThrow();
  });

  it('opens nothing that was changed', () => {
    const sealed = Buffer.from(seal.seal('text', 'here').slice(3), 'base64');
    for (let i = 0; i < sealed.length; i++) {
      const changed = Buffer.from(sealed);
      changed[i] = (changed[i] as number) ^ 1;
      expect(() => seal.open(`v1.${changed.toString('base64')}`, 'here'), `byte ${i}`).toThrow();
    }
    expect(() => seal.open('v1.', 'here')).toThrow();
  });
});

describe('a key file', () => {
  it('is made once, for its owner alone', () => {
    const path = join(scratchFolder(), 'key');
    const sealed = openSeal(path).seal('text', 'here');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(openSeal(path).open(sealed, 'here')).toBe('text');
  });

  it('is refused in one line where it holds no key', () => {
    const path = join(scratchFolder(), 'key');
    writeFileSync(path, 'short');
    expect(() => openSeal(path)).toThrow(/--secret-key-file .* does not hold a base64 key of 32 bytes/);
    expect(() => openSeal('/nowhere/key')).toThrow(/--secret-key-file \/nowhere\/key/);
  });
});

it('keeps no secret and no variable readable on disk', async () => {
  const folder = scratchFolder();
  const database = join(folder, 'manager.db');
  const { client, stop } = await startManager(`sqlite:${database}`, { folder });
  const team = await client('team_1', 'sandboxes:write');
  const webhook = { url: 'http://example.com/hook', secret: 'a-secret-nobody-may-read' };
  const id = await team.claim({ webhook, env_vars: { KEY: 'a-value-nobody-may-read' } });
  await team.call('PUT', `/api/v1/sandboxes/${id}`, {
    config: { env_vars: { KEY: 'another-value-nobody-may-read' } },
  });
  await team.post(`/api/v1/sandboxes/${id}/fork`);
  await team.call('DELETE', `/api/v1/sandboxes/${id}`);
  await stop();
  expect(readFileSync(database, 'latin1')).toContain(id);
  expect(readFileSync(database, 'latin1')).not.toContain('nobody-may-read');
  expect(readFileSync(database, 'latin1')).not.toContain(team.token);
});

describe('a key file of a database', () => {
  it('is refused at a start if it is not the one of the database', async () => {
    const folder = scratchFolder();
    const database = `sqlite:${join(folder, 'manager.db')}`;
    const { stop } = await startManager(database, { folder });
    await stop();
    await expect(startManager(database, { folder: scratchFolder() })).rejects.toThrow(
      /--secret-key-file holds a different key/,
    );
  });
});
