import type { ComponentChild } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

interface LinesProps<Item> {
  label: string;
  items: readonly Item[];
  /** Of one line, in px. */
  height: number;
  /** Whether the end stays in view as items come. */
  is_following?: boolean;
  /** Called when its reader leaves the end, or comes back to it. */
  onFollow?: (is_following: boolean) => void;
  /** An item to bring into view, by its place. */
  shown?: number | null;
  class?: string;
  /** Draws one item. Not called again for what it has drawn, as long as it is the same function. */
  children: (item: Item, index: number, style: LineStyle) => ComponentChild;
}

/** Where a line lies: others that come or go around it do not move it. */
export type LineStyle = { top: string; height: string };

type Draw<Item> = LinesProps<Item>['children'];

/** What was drawn last, by item: lines that stay in view are neither made nor compared again. */
class Drawn<Item> {
  #draw: Draw<Item> | null = null;
  #lines = new Map<Item, { index: number; line: ComponentChild }>();

  lines(items: readonly Item[], first: number, last: number, height: number, draw: Draw<Item>) {
    const before =
      draw === this.#draw ? this.#lines : new Map<Item, { index: number; line: ComponentChild }>();
    this.#draw = draw;
    this.#lines = new Map();
    for (let index = first; index < last; index++) {
      const item = items[index] as Item;
      const known = before.get(item);
      const style = { top: `${index * height}px`, height: `${height}px` };
      const line = known?.index === index ? known.line : draw(item, index, style);
      this.#lines.set(item, { index, line });
    }
    return [...this.#lines.values()].map(({ line }) => line);
  }
}

/** Lines above and below what is seen that are drawn as well. */
const MARGIN_LINES = 12;
const END_PX = 4;

/** A long list, of which only what is seen is drawn: its length costs nothing. */
export function Lines<Item>(props: LinesProps<Item>) {
  const { label, items, height, is_following = false, onFollow, shown = null, children } = props;
  const element = useRef<HTMLDivElement>(null);
  const drawn = useRef(new Drawn<Item>());
  const [view, setView] = useState({ top: 0, size: 600 });
  // At the end the place follows from the length: a state of its own would draw everything twice.
  const top = is_following ? Math.max(0, items.length * height - view.size) : view.top;
  const first = Math.max(0, Math.floor(top / height) - MARGIN_LINES);
  const last = Math.min(items.length, Math.ceil((top + view.size) / height) + MARGIN_LINES);

  useLayoutEffect(() => {
    const box = element.current;
    if (box === null) return;
    const watching = new ResizeObserver(() => setView({ top: box.scrollTop, size: box.clientHeight }));
    watching.observe(box);
    return () => watching.disconnect();
  }, []);
  useLayoutEffect(() => {
    const box = element.current;
    if (box !== null && is_following) box.scrollTop = items.length * height;
  }, [items, is_following, height, view.size]);
  useLayoutEffect(() => {
    const box = element.current;
    if (box === null || is_following) return;
    if (shown !== null) box.scrollTop = shown * height - box.clientHeight / 2;
    // Who stops following at the end, or finds something there, scrolls nothing that would be told.
    setView({ top: box.scrollTop, size: box.clientHeight });
  }, [shown, height, is_following]);

  const onScroll = () => {
    const box = element.current;
    if (box === null) return;
    const is_at_end = box.scrollHeight - box.scrollTop - box.clientHeight <= END_PX;
    if (is_at_end && is_following) return;
    setView({ top: box.scrollTop, size: box.clientHeight });
    if (is_at_end !== is_following) onFollow?.(is_at_end);
  };
  return (
    <div
      ref={element}
      class={`lines ${props.class ?? ''}`}
      role="group"
      aria-label={label}
      tabIndex={0}
      onScroll={onScroll}
    >
      <div class="lines-rows" style={{ height: `${items.length * height}px` }}>
        {drawn.current.lines(items, first, last, height, children)}
      </div>
    </div>
  );
}
