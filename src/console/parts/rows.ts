/** Keys that lead from row to row of a table: arrows, `j` and `k`, Home and End; Enter follows the row's link. */
export function onRowKey(event: KeyboardEvent): void {
  const { currentTarget, target } = event;
  if (!(currentTarget instanceof HTMLElement) || !(target instanceof HTMLElement)) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || event.ctrlKey || event.metaKey || event.altKey)
    return;
  const links = [...currentTarget.querySelectorAll<HTMLElement>('.row-link')];
  const row = target.closest('tr');
  const at = links.findIndex((link) => link.closest('tr') === row);
  const next: Record<string, number> = {
    ArrowDown: at + 1,
    j: at + 1,
    ArrowUp: at - 1,
    k: at - 1,
    Home: 0,
    End: links.length - 1,
  };
  const to = next[event.key];
  if (to === undefined || links[to] === undefined) return;
  event.preventDefault();
  links[to].focus();
}
