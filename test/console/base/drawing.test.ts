import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Drawing } from '../../../src/console/base/drawing.ts';

let waiting = new Set<() => void>();
const nextFrame = (run: () => void) => {
  waiting.add(run);
  return () => void waiting.delete(run);
};

/** The browser draws a frame. */
function frame(): void {
  const due = [...waiting];
  waiting.clear();
  for (const run of due) run();
}

beforeEach(() => {
  vi.useFakeTimers();
  waiting = new Set();
});

afterEach(() => {
  vi.useRealTimers();
});

it('what comes at once is drawn together with the next frame, what follows a while later, and nothing is left', () => {
  let drawn = 0;
  const drawing = new Drawing(nextFrame, () => {
    drawn += 1;
  });
  for (let n = 0; n < 10; n++) drawing.ask();
  expect([drawn, waiting.size]).toEqual([0, 1]);
  frame();
  expect(drawn).toBe(1);
  for (let n = 0; n < 10; n++) drawing.ask();
  vi.advanceTimersByTime(99);
  expect([drawn, waiting.size]).toEqual([1, 0]);
  vi.advanceTimersByTime(1);
  frame();
  expect(drawn).toBe(2);
  vi.advanceTimersByTime(1_000);
  expect([drawn, waiting.size]).toEqual([2, 0]);
  drawing.ask();
  frame();
  expect(drawn).toBe(3);
});

it('nothing is drawn once it has ended', () => {
  let drawn = 0;
  const drawing = new Drawing(nextFrame, () => {
    drawn += 1;
  });
  drawing.ask();
  drawing.end();
  frame();
  const resting = new Drawing(nextFrame, () => {
    drawn += 1;
  });
  resting.ask();
  frame();
  resting.ask();
  resting.end();
  vi.advanceTimersByTime(1_000);
  frame();
  expect(drawn).toBe(1);
});
