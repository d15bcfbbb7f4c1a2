import { localTime, relativeTime } from '../base/format.ts';

/** A moment in the machine's zone, or as a distance from now; in UTC when it is pointed at. */
export function Time({ at, is_relative = false }: { at: string | null; is_relative?: boolean }) {
  if (at === null) return <span class="muted">–</span>;
  const text = is_relative ? relativeTime(at) : localTime(at);
  return (
    <time class="number" dateTime={at} title={is_relative ? `${localTime(at)} (${at} UTC)` : `${at} (UTC)`}>
      {text}
    </time>
  );
}
