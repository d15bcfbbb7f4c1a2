import { bytes, visible } from '../base/format.ts';
import { useStore } from '../base/store.ts';
import { Badge } from '../parts/badge.tsx';
import { forgetEnded, type Transfer, transfers } from './transfers.ts';

const TONES = { running: 'accent', done: 'good', failed: 'bad', stopped: 'idle' } as const;

/** The transfers under way and ended; each can be stopped. */
export function TransferList() {
  const all = useStore(transfers);
  if (all.length === 0) return null;
  return (
    <section class="panel" aria-label="Transfers">
      <div class="panel-head">
        <h2>Transfers</h2>
        <div class="actions">
          <button type="button" class="button is-small" onClick={forgetEnded}>
            Forget the ended
          </button>
        </div>
      </div>
      <ul class="panel-body stack">
        {all.map((transfer) => (
          <Line key={transfer.id} transfer={transfer} />
        ))}
      </ul>
    </section>
  );
}

function Line({ transfer: { text, done, total, state, problem, stop } }: { transfer: Transfer }) {
  return (
    <li class="gauge">
      <div class="gauge-line">
        <bdi>{visible(text)}</bdi>
        <span class="actions number">
          {bytes(done)}
          {total !== null && ` of ${bytes(total)}`}
          <Badge tone={TONES[state]} text={state} />
          {state === 'running' && (
            <button type="button" class="button is-small" onClick={stop}>
              Stop<span class="unseen"> {visible(text)}</span>
            </button>
          )}
        </span>
      </div>
      {state === 'running' && (
        <progress
          max={total ?? undefined}
          value={total === null ? undefined : done}
          aria-label={visible(text)}
        />
      )}
      {problem !== null && (
        <span class="wrong text" role="alert">
          {problem}
        </span>
      )}
    </li>
  );
}
