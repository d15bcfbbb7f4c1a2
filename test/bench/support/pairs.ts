import type { Flood, FloodResult, FloodShape } from './flood.ts';
import { median } from './numbers.ts';
import { sized } from './size.ts';

const WARM_UP_MS = sized(1_500, 100);
const TURN_MS = sized(3_000, 200);
const TURNS = sized(4, 1);

export interface Pair {
  bare: number;
  ours: number;
  ratio: number;
}

/**
 * Loads two servers in turn, so that whatever else the machine does slows both; a figure is the median of its
 * turns and the ratio the median of theirs.
 */
export async function inTurns(
  flood: Flood,
  urls: { bare: string; ours: string },
  { connections }: Pick<FloodShape, 'connections'>,
  figure: (result: FloodResult) => number,
): Promise<Pair> {
  const turn = async (url: string, duration_ms: number) => {
    const result = await flood({ url, connections, duration_ms });
    if (result.refused > 0) throw new Error(`${result.refused} publishes were refused`);
    return figure(result);
  };
  await turn(urls.bare, WARM_UP_MS);
  await turn(urls.ours, WARM_UP_MS);
  const bare: number[] = [];
  const ours: number[] = [];
  for (let i = 0; i < TURNS; i++) {
    bare.push(await turn(urls.bare, TURN_MS));
    ours.push(await turn(urls.ours, TURN_MS));
  }
  return {
    bare: median(bare),
    ours: median(ours),
    ratio: median(ours.map((value, i) => value / (bare[i] ?? Number.NaN))),
  };
}
