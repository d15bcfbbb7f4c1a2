import { Store, useStore } from '../base/store.ts';
import { Dialog } from '../parts/dialog.tsx';

/** Whether the list of keys is shown. */
export const help = new Store(false);

const KEYS: readonly [keys: string, what: string][] = [
  ['Ctrl K', 'go to a view or a sandbox'],
  ['g, then a letter', 'go to a view: o overview, s sandboxes, d deliveries, e events, q quotas, u usage'],
  ['/', 'filter or search'],
  ['j  k  ↓  ↑', 'next and previous row'],
  ['Enter', 'open the row'],
  ['n', 'claim a sandbox, or start a process'],
  ['r', 'load again'],
  ['Escape', 'close a dialog'],
  ['Ctrl Shift Escape', 'leave the terminal'],
  ['?', 'these keys'],
];

/** The keys of the page. */
export function Help() {
  if (!useStore(help)) return null;
  return (
    <Dialog title="Keys" onClose={() => help.set(false)}>
      <dl class="facts">
        {KEYS.flatMap(([keys, what]) => [
          <dt key={keys}>
            <kbd>{keys}</kbd>
          </dt>,
          <dd key={`${keys} what`}>{what}</dd>,
        ])}
      </dl>
    </Dialog>
  );
}
