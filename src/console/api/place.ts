/** One sandbox: where its routes are, and where the page shows it. */
export interface Place {
  /** Its id at a manager; null where the page is that of one daemon. */
  sandbox_id: string | null;
  /** The path of its routes below `/api/v1`. */
  path: string;
  /** The first segments of its links. */
  link: readonly string[];
}

/** The sandbox of the daemon that the page is served for. */
export const DAEMON: Place = { sandbox_id: null, path: '', link: [] };

/** A sandbox of a manager. */
export function placeOf(sandbox_id: string): Place {
  return {
    sandbox_id,
    path: `/sandboxes/${encodeURIComponent(sandbox_id)}`,
    link: ['sandboxes', sandbox_id],
  };
}
