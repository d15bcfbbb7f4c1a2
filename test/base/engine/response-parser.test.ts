import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';
import { expect, it } from 'vitest';
import { beginExchange } from '../../../src/base/engine/response-parser.ts';
import { eventually } from '../../support/eventually.ts';

declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { exports: Record<string, unknown> };
};

/** A module of one function, which counts its argument down to 0. */
const COUNTDOWN = Buffer.from(
  '0061736d0100000001060160017f017f03020100070501016600000a140112000340200041016b210020000d000b20000b',
  'hex',
);
/** Called a few times with it, a function has done what the engine lets it do before it is optimised. */
const LONG = 50_000_000;

setFlagsFromString('--allow-natives-syntax');
const isOptimised = new Script('(f) => %IsTurboFanFunction(f)').runInThisContext();
const cachedData = new Script(source(0)).createCachedData();
let checks = 0;

/** A function that has been called once. Its module has a section of its own: the engine compiles equal modules once. */
function called(name: string): (from: number) => number {
  const section = Buffer.from([0, name.length + 1, name.length, ...Buffer.from(name)]);
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(Buffer.concat([COUNTDOWN, section])));
  const made = exports.f as (from: number) => number;
  made(1);
  return made;
}

/** A source that the engine has not compiled yet, which is as long as the others. */
function source(n: number): string {
  return `(() => ${1_000 + n})()`;
}

/** Whether the engine refuses what was compiled before this test. */
function isRefused(): boolean | undefined {
  checks += 1;
  return new Script(source(checks), { cachedData }).cachedDataRejected;
}

it('leaves what is first called while the first response is waited for as it was first compiled, and nothing else', async () => {
  const first = beginExchange();
  const second = beginExchange();
  first(false);
  first(false);
  const kept = called('kept');
  expect(isRefused()).toBe(true);
  second(false);
  expect(isRefused()).toBe(false);
  const between = called('between');
  const third = beginExchange();
  const fourth = beginExchange();
  const parser = called('parser');
  third(true);
  expect(isRefused()).toBe(false);
  fourth(false);
  const fifth = beginExchange();
  const after = called('after');
  expect(isRefused()).toBe(false);
  fifth(false);
  await eventually(() => {
    for (const each of [kept, between, parser, after]) each(LONG);
    expect([between, after].map(isOptimised)).toEqual([true, true]);
  });
  expect([kept, parser].map(isOptimised)).toEqual([false, false]);
});
