/**
 * A queue whose items all wait equally long, so that the first one in is the first one due. An item counts once, under
 * its present generation: changing that takes older entries out of the queue.
 */
export class DueQueue<Item extends { generation: number }> {
  /** How long each item waits, in ms. */
  readonly delay_ms: number;
  #items: ({ item: Item; generation: number; due_ms: number } | null)[] = [];
  #head = 0;

  constructor(delay_ms: number) {
    this.delay_ms = delay_ms;
  }

  /** Adds an item under its present generation. `now_ms` is monotonic. */
  put(item: Item, now_ms: number): void {
    this.#items.push({ item, generation: item.generation, due_ms: now_ms + this.delay_ms });
  }

  /** The first item that is still queued, and when it is due in monotonic ms; null if the queue is empty. */
  first(): { item: Item; generation: number; due_ms: number } | null {
    for (;;) {
      const entry = this.#items[this.#head];
      if (!entry) {
        this.#items = [];
        this.#head = 0;
        return null;
      }
      if (entry.item.generation === entry.generation) return entry;
      this.shift();
    }
  }

  /** Removes the first entry. */
  shift(): void {
    // Releases the item now, not when the array is cut: by then as many may be taken as are still waiting.
    this.#items[this.#head] = null;
    this.#head++;
    if (this.#head < 1024 || this.#head * 2 < this.#items.length) return;
    this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }
}
