import { ROOT } from '../api/connection.ts';

/** What `/readyz` says beside being ready, as far as the page shows it. */
export interface Facts {
  degraded: string[];
  limitations: string[];
  network: string | null;
}

/** Reads `/readyz`. */
export async function readiness(signal: AbortSignal): Promise<Facts> {
  const response = await fetch(new URL('readyz', ROOT), { cache: 'no-store', signal });
  const answer = (await response.json()) as {
    data?: {
      degraded?: string[];
      runtime_limitations?: string[];
      network?: { mode: string; reason: string | null };
    };
    error?: { message: string };
  };
  const { degraded = [], runtime_limitations = [], network } = answer.data ?? {};
  return {
    degraded: answer.error ? [answer.error.message] : degraded,
    limitations: runtime_limitations,
    network: network?.reason ? `${network.mode}: ${network.reason}` : null,
  };
}

/** Says what works with limits; nothing where all is well. */
export function Trouble({ facts: { degraded, limitations, network } }: { facts: Facts }) {
  const mild = [...limitations, ...(network === null ? [] : [`network ${network}`])];
  return (
    <>
      {degraded.length > 0 && (
        <div class="note is-warn" role="status">
          <strong>Works with limits</strong>
          {degraded.map((text) => (
            <span key={text} class="text">
              {text}
            </span>
          ))}
        </div>
      )}
      {mild.length > 0 && (
        <details class="note">
          <summary>What this machine does not allow ({mild.length})</summary>
          {mild.map((text) => (
            <span key={text} class="text muted">
              {text}
            </span>
          ))}
        </details>
      )}
    </>
  );
}
