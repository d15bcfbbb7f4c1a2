import { Store } from './store.ts';

/** What the page looks like; `system` follows the machine. */
export type Theme = 'system' | 'light' | 'dark';

const KEY = 'sandboxd-theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

function kept(): Theme {
  const value = localStorage.getItem(KEY);
  return value === 'light' || value === 'dark' ? value : 'system';
}

/** The theme that was chosen. */
export const theme = new Store<Theme>(kept());

/** Whether the page is dark at present; also changes with the machine. */
export const isDark = new Store<boolean>(false);

function show(): void {
  const is_dark = theme.value === 'dark' || (theme.value === 'system' && dark.matches);
  document.documentElement.dataset.theme = is_dark ? 'dark' : 'light';
  isDark.set(is_dark);
}

/** Chooses a theme and keeps the choice. */
export function choose(value: Theme): void {
  if (value === 'system') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, value);
  theme.set(value);
}

theme.onChange(show);
dark.addEventListener('change', show);
show();
