/**
 * The daemon's ends of terminals. The library does not close them on exec, and Node cannot change that: every process
 * would inherit every terminal, could read what is typed there, and would hold it open. So a start gives the child
 * /dev/null under these numbers.
 */
const open_terminals = new Set<number>();

/** Covers a terminal's descriptor in every start from now on. Call the returned function once it is closed. */
export function coverTerminal(fd: number): () => void {
  open_terminals.add(fd);
  return () => open_terminals.delete(fd);
}

/** The descriptors to cover. */
export function coveredTerminals(): ReadonlySet<number> {
  return open_terminals;
}
