import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { buildImage } from '../../.build/image/build.ts';
import { type Container, ImageStore, whyNoImages } from '../support/deploy/images.ts';
import { eventually } from '../support/eventually.ts';

vi.setConfig({ testTimeout: 1_200_000, hookTimeout: 1_200_000 });

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));
const WITHIN = { timeout: 120_000, interval: 200 };
const why_not = whyNoImages();
if (why_not !== null) console.log(`skipped, images built by buildah: ${why_not}`);

describe.skipIf(why_not !== null)('an image that buildah has built', () => {
  let folder: string;
  let store: ImageStore;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sandboxd-test-context-'));
    store = await ImageStore.make();
  });

  afterAll(() => {
    store?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  /** What every image promises: tini is the first process, and nobody in it is root. */
  const checkFirst = (container: Container) => {
    expect(container.status('Name')).toBe('tini');
    expect(container.status('Uid').split('\t')).toEqual(['1000', '1000', '1000', '1000']);
    expect(container.status('CapEff')).toMatch(/^0+$/);
  };

  it('sandbox.Dockerfile: tini, the daemon as an ordinary user, an event delivered, a clean end', async () => {
    const context = join(folder, 'image');
    await buildImage(context);
    const config = await store.build('sandbox.Dockerfile', context, 'sandboxd-base:0.1.0');
    expect(config).toMatchObject({ User: '1000:1000', WorkingDir: '/workspace' });
    const options = ['--webhook-url', 'http://127.0.0.1:8787/', '--watch-dir', '/workspace'];
    const container = await store.start('sandboxd-base:0.1.0', config, options);
    checkFirst(container);
    const [kind, ...health] = config.Healthcheck.Test;
    expect(kind).toBe('CMD');
    await eventually(() => container.exec(...health), WITHIN);
    container.follow('sandboxctl', 'listen', '--port', '8787');
    const { event_id } = JSON.parse(await container.exec('sandboxctl', 'publish', '--json', '{"step":1}'));
    await eventually(async () => {
      const { state } = JSON.parse(await container.exec('sandboxctl', 'show', '--json', event_id));
      expect(state).toBe('delivered');
    }, WITHIN);
    // An orphan is reaped.
    await container.exec('sh', '-c', 'sh -c "sleep 0 & exec true" & wait');
    await eventually(async () => {
      expect(await container.exec('sh', '-c', 'cat /proc/[0-9]*/status')).not.toMatch(/^State:\s+Z/m);
    }, WITHIN);
    expect(await container.stop()).toBe(0);
  });

  it('manager.Dockerfile: tini, the manager as an ordinary user, ready, healthy, a clean end', async () => {
    const context = join(folder, 'manager');
    mkdirSync(context);
    const npm = (...args: string[]) => execFileSync('npm', args, { cwd: CHECKOUT, stdio: 'pipe' });
    npm('pack', '--ignore-scripts', '--pack-destination', folder);
    const archive = readdirSync(folder).find((name) => name.endsWith('.tgz')) as string;
    npm('install', '--prefix', context, '--omit=dev', '--no-audit', '--no-fund', join(folder, archive));
    const config = await store.build('manager.Dockerfile', context, 'sandbox-manager:0.1.0');
    expect(config).toMatchObject({ User: '1000:1000', WorkingDir: '/var/lib/sandbox-manager' });
    const container = await store.start('sandbox-manager:0.1.0', config);
    checkFirst(container);
    const [kind, ...health] = config.Healthcheck.Test;
    expect(kind).toBe('CMD');
    await eventually(() => container.exec(...health), WITHIN);
    const ready =
      "fetch('http://127.0.0.1:8080/readyz').then(async (answer) => console.log(answer.status, await answer.text()))";
    await eventually(async () => {
      expect(await container.exec('node', '-e', ready)).toMatch(/^200 /);
    }, WITHIN);
    expect(await container.stop()).toBe(0);
  });
});
