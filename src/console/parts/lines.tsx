import type { ComponentChildren } from 'preact';
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
  children: (item: Item, index: number) => ComponentChildren;
}

/** Lines above and below what is seen that are drawn as well. */
const MARGIN_LINES = 12;
const END_PX = 4;

/** A long list, of which only what is seen is drawn: its length costs nothing. */
export function Lines<Item>(props: LinesProps<Item>) {
  const { label, items, height, is_following = false, onFollow, shown = null, children } = props;
  const element = useRef<HTMLDivElement>(null);
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
      <div style={{ height: `${items.length * height}px` }} />
      <div class="lines-rows" style={{ transform: `translateY(${first * height}px)` }}>
        {items.slice(first, last).map((item, index) => children(item, first + index))}
      </div>
    </div>
  );
}
