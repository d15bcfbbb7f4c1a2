import { PassThrough } from 'node:stream';
import { Output } from '../../../src/ctl/terminal/output.ts';

/** An output as on a terminal of this width, and what was written to it. */
export function screen(columns: number): { out: Output; text(): string } {
  // Whatever terminal the tests themselves run at.
  const getColorDepth = () => (process.env.NO_COLOR ? 1 : 8);
  const stream = Object.assign(new PassThrough(), { isTTY: true, columns, rows: 24, getColorDepth });
  return { out: new Output(stream), text: () => String(stream.read() ?? '') };
}

/** An output as into a pipe. */
export function pipe(): { out: Output; text(): string } {
  const stream = new PassThrough();
  return { out: new Output(stream), text: () => String(stream.read() ?? '') };
}
