import { useEffect, useRef } from 'preact/hooks';
import { Drawing } from './drawing.ts';

function nextFrame(run: () => void): () => void {
  const frame = requestAnimationFrame(run);
  return () => cancelAnimationFrame(frame);
}

/** A drawing of a component, which ends with it; `draw` may only use what stays the same. */
export function useDrawing(draw: () => void): Drawing {
  const kept = useRef<Drawing | null>(null);
  kept.current ??= new Drawing(nextFrame, draw);
  const drawing = kept.current;
  useEffect(() => () => drawing.end(), [drawing]);
  return drawing;
}
