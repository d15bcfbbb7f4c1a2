import { systemClock } from '../../base/clock.ts';
import type { ManagedSandbox } from '../../contract/sandboxes.ts';
import { distinctLength } from '../terminal/distinct-length.ts';
import type { Output, Style } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { glance } from '../terminal/quantity.ts';
import { table } from '../terminal/table.ts';

/** The beginning of an id that names its millisecond. */
const SHORT_ID = 'sbx_019a2b3c-4d5e'.length;
/** What is shown at least of the metadata. */
const METADATA_MIN_COLUMNS = 12;

/** The style of each status on a terminal. */
export const STATUS_STYLES: Record<ManagedSandbox['status'], Style> = {
  starting: 'yellow',
  running: 'green',
  paused: 'yellow',
  terminating: 'dim',
  failed: 'red',
  deleted: 'dim',
};

/** Sandboxes as a table for `out`, titles first: on a terminal with ids that are cut so far as they differ. */
export function sandboxTable(sandboxes: readonly ManagedSandbox[], out: Output): string[] {
  const now_ms = systemClock.wallMs();
  const ids = sandboxes.map(({ id }) => id);
  const id_length = out.columns === null ? Number.POSITIVE_INFINITY : distinctLength(ids, SHORT_ID);
  return table(
    [
      { title: 'SANDBOX ID', cell: ({ id }) => printable(id.slice(0, id_length)) },
      {
        title: 'STATUS',
        cell: ({ status, failure }) => printable(failure === null ? status : `${status}: ${failure}`),
        style: ({ status }, text) => out.style(STATUS_STYLES[status] ?? 'dim', text),
      },
      { title: 'TEMPLATE', cell: ({ template_id }) => printable(template_id), spare: 2 },
      { title: 'AGE', cell: ({ created_at }) => glance(now_ms - Date.parse(created_at)) },
      { title: 'TTL', cell: ({ expires_at }) => left(expires_at, now_ms), spare: 1 },
      { title: 'MEMORY', cell: ({ resources }) => printable(resources.memory), spare: 3 },
      { title: 'METADATA', cell: ({ metadata }) => metadataText(metadata), cut_to: METADATA_MIN_COLUMNS },
    ],
    sandboxes,
    out.columns,
  );
}

/** Metadata as it is given to a claim: `key:text`, in one line. */
export function metadataText(metadata: Record<string, string>): string {
  return printable(
    Object.entries(metadata)
      .map(([key, text]) => `${key}:${text}`)
      .join(' '),
  );
}

function left(expires_at: string | null, now_ms: number): string {
  return expires_at === null ? '-' : glance(Date.parse(expires_at) - now_ms);
}
