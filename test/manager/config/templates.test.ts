import { expect, it } from 'vitest';
import { configuredTemplates } from '../../../src/manager/config/templates.ts';

it('a template needs its image alone', () => {
  const templates = configuredTemplates({
    templates: { small: { image: 'debian:12', resources: { cpu: 0.5 } } },
  });
  expect(templates.get('small')).toEqual({
    ...{ image: 'debian:12', image_pull_secret: null, runtime_class: null, storage_class: null },
    ...{ user: 1000, work_dir: '/workspace', user_namespace: true, persistent_root: false },
    ...{ ephemeral_mib: 1024, resources: { cpu: 0.5 }, pool: null },
  });
  expect(configuredTemplates({}).size).toBe(0);
});

it('a root that persists belongs to user 0', () => {
  const templates = configuredTemplates({ templates: { whole: { image: 'i', persistent_root: true } } });
  expect(templates.get('whole')).toMatchObject({ user: 0, user_namespace: true, persistent_root: true });
  expect(templates.get('whole')).toMatchObject({ ephemeral_mib: 128 });
  const given = { templates: { whole: { image: 'i', ephemeral_storage: '64Mi' } } };
  expect(configuredTemplates(given).get('whole')).toMatchObject({ ephemeral_mib: 64 });
});

it.each([
  [[], 'templates must be an object'],
  [{ a: {} }, 'templates.a.image is required'],
  [
    { a: { image: 'i', ephemeral_storage: '63Mi' } },
    'templates.a.ephemeral_storage must be a size like 512Mi or 8Gi, of at least 64Mi',
  ],
  [{ a: { image: '' } }, 'templates.a.image must be the name of an image'],
  [{ 'a b': { image: 'i' } }, 'templates.a b'],
  [{ a: { image: 'i', volume: 1 } }, 'templates.a.volume unknown field'],
  [{ a: { image: 'i', user: -1 } }, 'templates.a.user must be'],
  [{ a: { image: 'i', storage_class: 'Fast' } }, 'templates.a.storage_class must be the name of an object'],
  [{ a: { image: 'i', work_dir: '/usr/work' } }, 'templates.a.work_dir must not hide'],
  [{ a: { image: 'i', work_dir: '/work/../usr' } }, 'templates.a.work_dir must be an absolute path'],
  [
    { a: { image: 'i', persistent_root: true, user_namespace: false } },
    'templates.a.persistent_root needs user_namespace',
  ],
  [{ a: { image: 'i', persistent_root: true, user: 7 } }, 'templates.a.persistent_root needs the user 0'],
  [{ a: { image: 'i', resources: { memory: '64Mi' } } }, 'templates.a.resources.memory must be a size'],
  [{ a: { image: 'i', resources: { cpu: 'two' } } }, 'templates.a.resources.cpu must be a number'],
  [{ a: { image: 'i', pool: -1 } }, 'templates.a.pool must be'],
  [
    { a: { image: 'i', pool: 1, resources: { memory: '1Gi', cpu: 1 } } },
    'templates.a.resources.disk is required',
  ],
])('%j is refused in one line that names what is wrong', (templates, message) => {
  expect(() => configuredTemplates({ templates })).toThrow(`--config: ${message}`);
});

it('a pool has the size that its template says', () => {
  const resources = { memory: '1Gi', cpu: 0.5, disk: '2Gi' };
  const templates = configuredTemplates({ templates: { warm: { image: 'i', pool: 3, resources } } });
  const pool = { size: 3, memory_mib: 1024, cpu_millis: 500, disk_mib: 2048 };
  expect(templates.get('warm')?.pool).toEqual(pool);
});
