import type { Sandbox } from '../../client/sandbox.ts';
import { daemon, manager } from './client.ts';

/** One sandbox: how it is asked, and where the page shows it. */
export interface Place {
  /** Its id at a manager; null where the page is that of one daemon. */
  sandbox_id: string | null;
  sandbox: Sandbox;
  /** The path of its routes below `/api/v1`: tells places apart. */
  path: string;
  /** The first segments of its links. */
  link: readonly string[];
}

/** The sandbox of the daemon that the page is served for. */
export const DAEMON: Place = { sandbox_id: null, sandbox: daemon.sandbox, path: '', link: [] };

let last: Place = DAEMON;

/** A sandbox of a manager; the same place as before while the page shows the same sandbox. */
export function placeOf(sandbox_id: string): Place {
  if (last.sandbox_id !== sandbox_id) {
    last = {
      sandbox_id,
      sandbox: manager.sandbox(sandbox_id),
      path: `/sandboxes/${encodeURIComponent(sandbox_id)}`,
      link: ['sandboxes', sandbox_id],
    };
  }
  return last;
}
