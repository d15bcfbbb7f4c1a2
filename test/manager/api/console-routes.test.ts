import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { Given } from '../../../src/base/options.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

const ASSETS = fileURLToPath(new URL('../../../dist/console/assets', import.meta.url));

async function start(options: Given = {}) {
  const { manager } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, { options });
  /** The answer with its body as it was sent, and to the path as it is given. */
  return (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    new Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
      const { port } = new URL(manager.url);
      httpRequest({ port, path, method, headers })
        .once('response', (response) => {
          const pieces: Buffer[] = [];
          response.on('data', (piece: Buffer) => pieces.push(piece));
          response.once('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body: Buffer.concat(pieces),
            }),
          );
        })
        .once('error', reject)
        .end();
    });
}

describe('the console', () => {
  it('is a page that runs nothing but its own files, in no frame, and tells nobody where it is', async () => {
    const get = await start();
    expect(await get('/console')).toMatchObject({ status: 308, headers: { location: 'console/' } });
    const page = await get('/console/');
    expect(page.status).toBe(200);
    expect(page.body.toString()).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=|javascript:|https?:/i);
    const policy = String(page.headers['content-security-policy']);
    expect(policy).not.toMatch(/unsafe|\*|https?:|data:|blob:/);
    for (const part of [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "frame-ancestors 'none'",
    ]) {
      expect(policy).toContain(part);
    }
    expect(page.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'cache-control': 'no-cache',
    });
    expect(JSON.parse((await get('/console/program.json')).body.toString())).toEqual({ program: 'manager' });
  });

  it('sends what the build has compressed, for ever under its hash, and 304 to who has it', async () => {
    const get = await start();
    const name = readdirSync(ASSETS).find((each) => /^index-.*\.js$/.test(each)) as string;
    const path = `/console/assets/${name}`;
    const plain = await get(path);
    const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
    const brotli = await get(path, { 'accept-encoding': 'gzip, br' });
    const gzip = await get(path, { 'accept-encoding': 'br;q=0, gzip' });
    expect([plain, brotli, gzip].map(({ headers }) => headers['content-encoding'])).toEqual([
      undefined,
      'br',
      'gzip',
    ]);
    expect(digest(brotliDecompressSync(brotli.body))).toBe(digest(plain.body));
    expect(digest(gunzipSync(gzip.body))).toBe(digest(plain.body));
    expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable');
    const etag = String(brotli.headers.etag);
    const again = await get(path, { 'accept-encoding': 'br', 'if-none-match': `"x", W/${etag}` });
    expect([again.status, again.body.length, again.headers['x-content-type-options']]).toEqual([
      304,
      0,
      'nosniff',
    ]);
    const head = await get(path, {}, 'HEAD');
    expect([head.status, head.body.length, head.headers['content-length']]).toEqual([
      200,
      0,
      String(plain.body.length),
    ]);
  });

  it('reaches nothing but what the build has made', async () => {
    const get = await start();
    for (const path of [
      '/console/../package.json',
      '/console/..%2f..%2fpackage.json',
      '/console/%2e%2e/sandboxd.cjs',
      '/console/assets/../../sandboxd.cjs',
      '/console//etc/passwd',
      '/console/assets/',
      '/console/constructor',
      '/console/index.html.br',
    ]) {
      expect((await get(path)).status, path).toBe(404);
    }
    expect(await get('/console/', {}, 'POST')).toMatchObject({
      status: 405,
      headers: { allow: 'GET, HEAD' },
    });
  });

  it('is not there with --console off', async () => {
    const get = await start({ console: 'off' });
    for (const path of ['/console', '/console/', '/console/program.json', '/console/index.html']) {
      expect((await get(path)).status, path).toBe(404);
    }
  });
});
