import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type EventLine, Finder, lineOf, withLines } from '../../../src/console/events/log.ts';

const KEPT_MAX = 20_000;

const line = (n: number, event_type = 'agent.event') =>
  lineOf(JSON.stringify({ event_id: `evt_${n}`, payload: { n } }), event_type, String(n));

it('what is found among lines that grow, are dropped or looked for anew is what is there', () => {
  const kinds = ['agent.event', 'file.modified'];
  const step = fc.record({
    more: fc.nat(5),
    dropped: fc.boolean(),
    kind: fc.constantFrom('', ...kinds),
    text: fc.constantFrom('', '1', 'EVT_2'),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const finder = new Finder();
      let lines: EventLine[] = [];
      let next = 0;
      for (const { more, dropped, kind, text } of steps) {
        const newer = Array.from({ length: more }, () => line(next++, kinds[next % 2]));
        lines = [...lines, ...newer].slice(dropped ? 2 : 0);
        const wanted = lines.filter(
          ({ event_type, body }) =>
            (kind === '' || event_type === kind) && body.toLowerCase().includes(text.toLowerCase()),
        );
        expect(finder.find(lines, { kind, text })).toEqual(wanted);
      }
    }),
  );
});

it('of lines that grow, each is looked at once', () => {
  let looked = 0;
  const counted = (n: number): EventLine => ({
    ...line(n),
    get body() {
      looked += 1;
      return String(n);
    },
  });
  const finder = new Finder();
  let lines: EventLine[] = [];
  for (let n = 0; n < 100; n++) {
    lines = [...lines, counted(n)];
    finder.find(lines, { kind: '', text: '9' });
  }
  expect(looked).toBe(100);
  expect(finder.find(lines, { kind: '', text: '9' })).toHaveLength(19);
});

it('the newest lines are kept, and older ones are dropped many at a time', () => {
  let lines: readonly EventLine[] = [];
  let dropped = 0;
  for (let at = 0; at < KEPT_MAX * 2; at += 500) {
    const grown = withLines(
      lines,
      Array.from({ length: 500 }, (_, n) => line(at + n)),
    );
    if (grown.length < lines.length + 500) dropped += 1;
    lines = grown;
    expect(lines.at(-1)?.key).toBe(`evt_${at + 499}`);
    expect(lines.length).toBeLessThanOrEqual(KEPT_MAX * 1.1);
  }
  expect(lines.length).toBeGreaterThanOrEqual(KEPT_MAX);
  expect(dropped).toBeLessThanOrEqual(KEPT_MAX / 1_000);
});
