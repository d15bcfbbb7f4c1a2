import { readFileSync } from 'node:fs';

/**
 * Sets this program's wall clock off by what the file of `SHIFTED_CLOCK` says, in ms, at any time: what the machine's
 * clock does when somebody sets it. The monotonic clock stays true.
 */
const { now } = Date;
const path = process.env.SHIFTED_CLOCK;
const LOOK_NS = 5_000_000n;
let shift_ms = 0;
let looked_ns = 0n;

if (path !== undefined) {
  Date.now = () => {
    const at_ns = process.hrtime.bigint();
    if (at_ns - looked_ns > LOOK_NS) {
      looked_ns = at_ns;
      shift_ms = Number(readFileSync(path, 'utf8'));
    }
    return now() + shift_ms;
  };
}
