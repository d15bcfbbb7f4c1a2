/**
 * The daemon's ends of terminals. The library leaves them open over exec, and Node cannot change that: without
 * care every process would inherit every terminal, could read what is typed there, and would hold it open. So a
 * start gives the child /dev/null under these numbers.
 */
const open_terminals = new Set<number>();

/** Covers a terminal's number in every start from now on; call what it gives when the number is closed. */
export function coverTerminal(fd: number): () => void {
  open_terminals.add(fd);
  return () => open_terminals.delete(fd);
}

/** The numbers to cover. */
export function coveredTerminals(): ReadonlySet<number> {
  return open_terminals;
}
