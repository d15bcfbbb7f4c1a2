import { nowMs } from '../base/clock.ts';
import { goTo, linkTo } from '../base/router.ts';
import { program } from '../base/session.ts';
import { help } from './help.tsx';
import { palette } from './palette.tsx';
import { placesOf } from './places.ts';

/** How long after `g` its letter may come. */
const SECOND_KEY_MS = 1_500;

let leader_ms = Number.NEGATIVE_INFINITY;

/** Listens for the keys of the whole page. Keys that are typed into a field or terminal are left alone. */
export function listenForShortcuts(): void {
  addEventListener('keydown', (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k' && !isTerminal(event.target)) {
      event.preventDefault();
      return palette.set(!palette.value);
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector('dialog[open]')) return;
    if (take(event.key)) event.preventDefault();
  });
}

function take(key: string): boolean {
  const is_second = nowMs() - leader_ms < SECOND_KEY_MS;
  leader_ms = Number.NEGATIVE_INFINITY;
  if (is_second) {
    const place = placesOf(program.value ?? 'manager').find((each) => each.key === key);
    if (place) goTo(linkTo(place.segments));
    return place !== undefined;
  }
  if (key === 'g') {
    leader_ms = nowMs();
    return true;
  }
  if (key === '?') help.set(true);
  else return press(`[data-key="${key === '/' ? 'slash' : key}"]`);
  return true;
}

/** Focuses a field, or presses a button, that names this key. */
function press(selector: string): boolean {
  if (!/^\[data-key="[a-z]+"\]$/.test(selector)) return false;
  const element = document.querySelector<HTMLElement>(selector);
  if (element === null) return false;
  if (element instanceof HTMLInputElement) element.focus();
  else element.click();
  return true;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

function isTerminal(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('.xterm') !== null;
}
