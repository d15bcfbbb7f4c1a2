import { setFlagsFromString } from 'node:v8';

const BASELINE = ['--no-wasm-tier-up', '--no-wasm-dynamic-tiering'];
const DEFAULT = ['--wasm-tier-up', '--wasm-dynamic-tiering'];

/** Ends an exchange: with its response's beginning, or without one. Further calls do nothing. */
export type EndExchange = (is_answered: boolean) => void;

/** Exchanges whose response may be the first that is parsed. */
let waiting = 0;
let is_compiled = false;

/**
 * Notes that a request is about to be written. Until a response has been parsed, the engine's baseline compiler alone is
 * allowed for WebAssembly, which in this program only the HTTP library's parser is: a function stays with the compilers
 * that were allowed at its first call. Optimising the parser takes 25 MB, a good part of which the C library never gives
 * back, and saves half a microsecond a response.
 */
export function beginExchange(): EndExchange {
  if (is_compiled) return nothing;
  waiting += 1;
  if (waiting === 1) allow(BASELINE);
  let is_over = false;
  return (is_answered) => {
    if (is_over) return;
    is_over = true;
    waiting -= 1;
    if (is_compiled) return;
    is_compiled = is_answered;
    // Code that was compiled ahead is accepted with the default flags alone.
    if (is_compiled || waiting === 0) allow(DEFAULT);
  };
}

function nothing(): void {}

function allow(flags: string[]): void {
  for (const flag of flags) setFlagsFromString(flag);
}
