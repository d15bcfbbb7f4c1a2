import { useState } from 'preact/hooks';
import type { AttemptView } from '../../contract/deliveries.ts';
import { type DeliveryWhole, deliveries, type Outbox } from '../api/deliveries.ts';
import { useResource } from '../api/resource.ts';
import { bytes, duration, visible, visibleLines } from '../base/format.ts';
import { linkTo } from '../base/router.ts';
import { Badge, StateBadge } from '../parts/badge.tsx';
import { Copy, Id } from '../parts/copy.tsx';
import { Facts } from '../parts/facts.tsx';
import { Check } from '../parts/field.tsx';
import { prettyJson } from '../parts/json.ts';
import { Loaded } from '../parts/loaded.tsx';
import { Empty } from '../parts/notes.tsx';
import { Time } from '../parts/time.tsx';
import { ReplayChosen } from './replay-dialog.tsx';
import { VerifyBox } from './verify-box.tsx';

const REFRESH_MS = 3_000;

interface ViewProps {
  outbox: Outbox;
  event_id: string;
  link: readonly string[];
}

/** One record: its attempts, its body as sent, and whether a secret has signed it. */
export function DeliveryView({ outbox, event_id, link }: ViewProps) {
  const [is_replaying, setReplaying] = useState(false);
  const one = useResource(
    `${outbox?.path ?? ''} ${event_id}`,
    (signal) => deliveries.one(outbox, event_id, signal),
    REFRESH_MS,
  );
  return (
    <div class="page">
      <header class="page-head">
        <div class="title">
          <a class="crumb" href={linkTo(link)}>
            Deliveries
          </a>
          <span class="muted" aria-hidden="true">
            /
          </span>
          {outbox === null ? (
            <h1>{one.data?.event_type ?? event_id}</h1>
          ) : (
            <h2>{one.data?.event_type ?? event_id}</h2>
          )}
          {one.data && <StateBadge state={one.data.state} />}
        </div>
        {one.data && one.data.state !== 'pending' && one.data.state !== 'foreign' && (
          <div class="actions">
            <button type="button" class="button is-primary" onClick={() => setReplaying(true)}>
              Replay
            </button>
          </div>
        )}
      </header>
      <Loaded resource={one}>{(delivery) => <Whole delivery={delivery} />}</Loaded>
      {is_replaying && (
        <ReplayChosen
          outbox={outbox}
          event_ids={[event_id]}
          onClose={() => setReplaying(false)}
          onDone={one.reload}
        />
      )}
    </div>
  );
}

function Whole({ delivery }: { delivery: DeliveryWhole }) {
  const { event_id, sequence, sandbox_id, created_at, finished_at, next_attempt_at, headers, body } =
    delivery;
  return (
    <div class="grid">
      <div class="stack">
        <section class="panel" aria-label="Record">
          <div class="panel-body">
            <Facts
              facts={[
                ['Event', <Id key="id" id={event_id} />],
                sequence === null
                  ? null
                  : [
                      'Sequence',
                      <span key="sequence" class="number">
                        {sequence}
                      </span>,
                    ],
                sandbox_id === undefined
                  ? null
                  : [
                      'Sandbox',
                      <a key="sandbox" class="mono" href={linkTo(['sandboxes', sandbox_id])}>
                        {sandbox_id}
                      </a>,
                    ],
                ['Committed', <Time key="created" at={created_at} />],
                finished_at === null ? null : ['Finished', <Time key="finished" at={finished_at} />],
                next_attempt_at === null
                  ? null
                  : ['Next attempt', <Time key="next" at={next_attempt_at} is_relative />],
              ]}
            />
          </div>
        </section>
        <Attempts attempts={delivery.attempts} />
      </div>
      <div class="stack">
        <Body body={body} />
        <section class="panel" aria-label="Headers">
          <div class="panel-head">
            <h2>Headers that do not change</h2>
          </div>
          <div class="panel-body">
            <Facts
              facts={Object.entries(headers).map(([name, value]) => [
                visible(name),
                <code key={name}>{visible(value)}</code>,
              ])}
            />
          </div>
        </section>
        <VerifyBox body={body} headers={headers} />
      </div>
    </div>
  );
}

function Body({ body }: { body: string }) {
  const [is_exact, setExact] = useState(false);
  return (
    <section class="panel" aria-label="Body">
      <div class="panel-head">
        <h2>Body as sent</h2>
        <span class="muted number">{bytes(new TextEncoder().encode(body).length)}</span>
        <div class="actions">
          <Check label="exact" checked={is_exact} onChange={setExact} />
          <Copy text={body} label="Copy the body" />
        </div>
      </div>
      <pre class="code" tabIndex={0}>
        {is_exact ? visibleLines(body) : prettyJson(body)}
      </pre>
    </section>
  );
}

function Attempts({ attempts }: { attempts: readonly AttemptView[] }) {
  return (
    <section class="panel" aria-label="Attempts">
      <div class="panel-head">
        <h2>Attempts</h2>
      </div>
      {attempts.length === 0 ? (
        <Empty title="Not attempted yet">The endpoint may be in backoff, or paused with its sandbox.</Empty>
      ) : (
        <ol class="timeline">
          {attempts.toReversed().map((attempt) => (
            <Attempt key={attempt.attempt} attempt={attempt} />
          ))}
        </ol>
      )}
    </section>
  );
}

function Attempt({ attempt: each }: { attempt: AttemptView }) {
  const is_good = each.status !== null && each.status >= 200 && each.status < 300;
  const text = each.status === null ? (each.error ?? 'unknown') : String(each.status);
  return (
    <li class={is_good ? 'is-good' : 'is-bad'}>
      <div class="actions">
        <strong class="number">#{each.attempt}</strong>
        <Badge tone={is_good ? 'good' : 'bad'} text={text} />
        <span class="muted number">{duration(each.duration_ms)}</span>
        <span class="muted">
          <Time at={each.started_at} />
        </span>
      </div>
      {each.error_detail !== null && <p class="text">{visible(each.error_detail)}</p>}
      {each.next_attempt_at !== null && (
        <p class="muted">
          then again at <Time at={each.next_attempt_at} />
        </p>
      )}
      {each.response_body !== null && each.response_body !== '' && (
        <details>
          <summary>Answer</summary>
          <pre class="code" tabIndex={0}>
            {visibleLines(each.response_body)}
          </pre>
        </details>
      )}
    </li>
  );
}
