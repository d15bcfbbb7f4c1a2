/** Items that all wait equally long, so that the first in is the first due. An item put in again counts once. */
export class DueQueue<Item extends { generation: number }> {
  readonly delay_ms: number;
  #items: ({ item: Item; generation: number; due_ms: number } | null)[] = [];
  #head = 0;

  constructor(delay_ms: number) {
    this.delay_ms = delay_ms;
  }

  /** Puts an item in under its present generation; another generation later takes it out again. */
  put(item: Item, now_ms: number): void {
    this.#items.push({ item, generation: item.generation, due_ms: now_ms + this.delay_ms });
  }

  /** The first that is still in, with when it is due. */
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

  shift(): void {
    // Not held on to until the list is cut: there may be as many of them as wait.
    this.#items[this.#head] = null;
    this.#head++;
    if (this.#head < 1024 || this.#head * 2 < this.#items.length) return;
    this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }
}
