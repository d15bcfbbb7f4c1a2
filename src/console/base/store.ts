import { useEffect, useState } from 'preact/hooks';

/** A value that several parts of the page show. */
export class Store<Value> {
  #value: Value;
  readonly #listeners = new Set<() => void>();

  constructor(value: Value) {
    this.#value = value;
  }

  get value(): Value {
    return this.#value;
  }

  set(value: Value): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of [...this.#listeners]) listener();
  }

  /** Calls `listener` after each change; what it returns ends that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** The value of a store; the component is drawn again when it changes. */
export function useStore<Value>(store: Store<Value>): Value {
  const [, redraw] = useState(0);
  useEffect(() => {
    const draw = () => redraw((count) => count + 1);
    draw();
    return store.onChange(draw);
  }, [store]);
  return store.value;
}
