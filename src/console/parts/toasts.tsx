import { problemOf } from '../api/problem.ts';
import { after } from '../base/clock.ts';
import { Store, useStore } from '../base/store.ts';
import { Icon } from './icon.tsx';

interface Toast {
  id: number;
  text: string;
  is_bad: boolean;
}

const toasts = new Store<readonly Toast[]>([]);
const SHOWN_MS = 6_000;
const SHOWN_MAX = 4;
let last_id = 0;

function remove(id: number): void {
  toasts.set(toasts.value.filter((each) => each.id !== id));
}

/** Says in a corner that something was done; what went wrong stays until it is closed. */
export function say(text: string, is_bad = false): void {
  last_id += 1;
  const id = last_id;
  toasts.set([...toasts.value, { id, text, is_bad }].slice(-SHOWN_MAX));
  if (!is_bad) after(SHOWN_MS, () => remove(id));
}

/** Does something and says what became of it. */
export async function tell(run: () => Promise<unknown>, done: string): Promise<void> {
  try {
    await run();
    say(done);
  } catch (error) {
    say(problemOf(error).message, true);
  }
}

/** What was said. */
export function Toasts() {
  return (
    <div class="toasts" aria-live="polite">
      {useStore(toasts).map(({ id, text, is_bad }) => (
        <div key={id} class={`toast${is_bad ? ' is-bad' : ''}`}>
          <span class="text">{text}</span>
          <button
            type="button"
            class="button is-plain is-icon is-small"
            aria-label="Dismiss"
            onClick={() => remove(id)}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
