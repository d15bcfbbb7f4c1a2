import { execFile, execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { EdgeVM } from '@edge-runtime/vm';
import { publint } from 'publint';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sign } from '../../src/webhook/signature.ts';
import { startDaemon } from '../support/daemon/running-daemon.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BIN = join(ROOT, 'node_modules/.bin');
const ATTW = fileURLToPath(
  new URL('dist/index.js', import.meta.resolve('@arethetypeswrong/cli/package.json')),
);
const BODY = readFileSync(join(ROOT, 'fixtures/events/process.exited.body'), 'utf8');
const RUN = `import { consume } from './consumer.mts';
const [, , ...given] = process.argv;
console.log(JSON.stringify(await consume(...(given as [string, string, string, string]))));
`;
const COMMONJS = `import events = require('sandboxd/events');
import signature = require('sandboxd/signature');
const kinds: readonly events.EventType[] = events.EVENT_TYPES;
const payload: events.EventPayloads['agent.event'] = { step: 1 };
const is_signed = signature.verify('secret', 'body', signature.sign('secret', 'body'));
events.verify('body', {}, 'secret').then((is_right) => console.log(kinds.length, payload.step, is_signed, is_right));
`;

/** The examples of the documents as modules: each a function of what they leave open. */
function examples(): string[] {
  const texts = ['README.md', 'src/client/README.md'].map((path) => readFileSync(join(ROOT, path), 'utf8'));
  const blocks = texts.flatMap((text) => [...text.matchAll(/^```ts\n(.*?)^```$/gms)]);
  const open = 'body: string, headers: Headers, SIGNING_SECRET: string, token: string';
  return blocks.map(([, code = '']) => {
    const imports = /^import .*;$/gm;
    const rest = code.replaceAll(imports, '');
    return `${code.match(imports)?.join('\n')}\nexport async function example(${open}) {\n${rest}}\n`;
  });
}

/** Runs a program to its end; its output, and its status where it fails. */
async function run(cwd: string, program: string, args: string[]) {
  const ran = promisify(execFile)(program, args, { cwd, maxBuffer: 2 ** 26 });
  return ran
    .then(({ stdout }) => [0, stdout])
    .catch(({ code, stdout, stderr }) => [code, `${stdout}${stderr}`]);
}

function has(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe('the packed package', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandboxd-consumer-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  let archive = '';

  beforeAll(async () => {
    const args = ['pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder];
    archive = join(folder, execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8' }).trim());
    const installed = join(folder, 'node_modules/sandboxd');
    mkdirSync(installed, { recursive: true });
    execFileSync('tar', ['-xzf', archive, '-C', installed, '--strip-components=1']);
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    copyFileSync(join(ROOT, 'fixtures/programs/consumer.mts'), join(folder, 'consumer.mts'));
    writeFileSync(join(folder, 'run.mts'), RUN);
    writeFileSync(join(folder, 'commonjs.cts'), COMMONJS);
  });

  it('has types for a server in Node, for a bundler with the types of browsers alone, and for CommonJS', async () => {
    const strict = ['--noEmit', '--strict', '--target', 'es2022', '--exactOptionalPropertyTypes'];
    const node = ['--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')];
    const nodenext = ['--module', 'nodenext', '--lib', 'es2024,esnext.disposable'];
    const bundler = [
      '--module',
      'esnext',
      '--moduleResolution',
      'bundler',
      '--lib',
      'es2024,dom,dom.iterable',
    ];
    const tsc = (...args: string[]) => run(folder, join(BIN, 'tsc'), [...strict, ...args]);
    const named = examples().map((code, index) => ({ name: `example-${index}.mts`, code }));
    for (const { name, code } of named) writeFileSync(join(folder, name), code);
    const files = ['consumer.mts', 'commonjs.cts', ...named.map(({ name }) => name)];
    expect(files).toHaveLength(6);
    expect(await tsc(...nodenext, ...node, ...files)).toEqual([0, '']);
    expect(await tsc(...bundler, '--types', '', 'consumer.mts')).toEqual([0, '']);
  });

  it('has nothing to say for those who check what packages export', async () => {
    const { messages } = await publint({
      pkgDir: join(folder, 'node_modules/sandboxd'),
      pack: false,
      strict: true,
    });
    // The commands are programs of the shell, of which publint expects another first line.
    const others = messages.filter(({ code }) => code !== 'BIN_FILE_NOT_EXECUTABLE');
    expect(others).toEqual([]);
    const attw = (...args: string[]) =>
      run(folder, process.execPath, [ATTW, archive, '--format', 'ascii', ...args]);
    const modules = 'node16 (from ESM): 🟢 (ESM)\nbundler: 🟢';
    const both = await attw('--profile', 'node16', '--entrypoints', 'events', 'signature');
    expect(both).toEqual([0, expect.stringContaining(`node16 (from CJS): 🟢 (CJS)\n${modules}`)]);
    const client = await attw('--profile', 'esm-only', '--entrypoints', 'client');
    expect(client).toEqual([0, expect.stringContaining(modules)]);
  });

  const runs = async (program: string, args: string[]) => {
    const { port, token } = await startDaemon();
    const given = [`http://127.0.0.1:${port}`, token, BODY, sign('secret', BODY)];
    const [status, text] = await run(folder, program, [...args, 'run.mts', ...given]);
    expect([status, text]).toEqual([0, expect.stringMatching(/^\{.*\}\n$/)]);
    expect(JSON.parse(String(text))).toEqual({
      ...{ kinds: 10, is_signed: true, subject: 'build 3', state: 'running', code: 'not_found' },
      output: 'typed\r\n<typed>\r\n',
    });
  };

  it('runs in Node, as modules and as CommonJS', async () => {
    await runs(process.execPath, []);
    const commonjs = await run(folder, process.execPath, [
      '--no-warnings',
      '--experimental-transform-types',
      'commonjs.cts',
    ]);
    expect(commonjs).toEqual([0, '10 1 true false\n']);
  });

  it.skipIf(!has('bun'))('runs in Bun (skipped without bun)', () => runs('bun', ['run']));

  it.skipIf(!has('deno'))('runs in Deno (skipped without deno)', () =>
    runs('deno', ['run', '--allow-net', '--no-prompt', '--quiet', '--no-lock', '--node-modules-dir=manual']),
  );

  it('verifies and parses on an edge runtime, which makes no code of texts', async () => {
    const edge = new EdgeVM({ codeGeneration: { strings: false, wasm: false } });
    const source = readFileSync(join(folder, 'node_modules/sandboxd/dist/events.cjs'), 'utf8');
    edge.evaluate(
      `const exports = {}; const module = { exports };\n${source}\nglobalThis.events = module.exports;`,
    );
    Object.assign(edge.context, { given: { body: BODY, signature: sign('secret', BODY) } });
    const received = await edge.evaluate(`(async () => {
      const headers = new Headers({ 'X-Service-Signature': given.signature });
      return JSON.stringify([await events.verify(given.body, headers, 'secret'), events.parse(given.body).event_type]);
    })()`);
    expect(JSON.parse(received)).toEqual([true, 'process.exited']);
    expect(() => edge.evaluate(`new Function('return 1')`)).toThrow('Code generation from strings');
  });
});
