import { useState } from 'preact/hooks';
import type { ManagedSandbox } from '../api/managed-sandbox.ts';
import { sandboxes } from '../api/sandboxes.ts';
import { goTo, linkTo } from '../base/router.ts';
import { Confirm } from '../parts/confirm.tsx';
import { Check, Field } from '../parts/field.tsx';
import { say } from '../parts/toasts.tsx';
import { durationOf } from './claim-form.ts';
import { EditDialog } from './edit-dialog.tsx';

/** What is to be done to a sandbox. */
export interface Change {
  verb: 'pause' | 'resume' | 'fork' | 'refresh' | 'edit' | 'delete';
  sandbox: ManagedSandbox;
}

interface DialogProps {
  change: Change;
  onClose(): void;
  onDone(): void;
}

/** Asks before a sandbox is changed, and says what that will do. */
export function ChangeDialog({ change, onClose, onDone }: DialogProps) {
  const { verb, sandbox } = change;
  const shared = { sandbox, onClose, onDone };
  if (verb === 'fork') return <Fork {...shared} />;
  if (verb === 'delete') return <Delete {...shared} />;
  if (verb === 'edit') return <EditDialog {...shared} />;
  return <Simple {...shared} verb={verb} />;
}

interface Props {
  sandbox: ManagedSandbox;
  onClose(): void;
  onDone(): void;
}

const SIMPLE = {
  pause: {
    title: 'Pause this sandbox?',
    verb: 'Pause',
    text: 'Every process in it is frozen where it is, and none gets time until it is resumed. Its files, its output and its undelivered events are kept. It holds no memory and no cores of the node meanwhile, only its disk.',
    done: 'Paused',
  },
  resume: {
    title: 'Resume this sandbox?',
    verb: 'Resume',
    text: 'Its processes go on where they were frozen. It takes memory, cores and a place among the active sandboxes again, and is refused where there is none.',
    done: 'Resumed',
  },
  refresh: {
    title: 'Begin its time anew?',
    verb: 'Refresh',
    text: 'Its ttl counts from now.',
    done: 'Its time begins anew',
  },
} as const;

function Simple({ sandbox, verb, onClose, onDone }: Props & { verb: keyof typeof SIMPLE }) {
  const { title, text, done, verb: word } = SIMPLE[verb];
  return (
    <Confirm
      title={title}
      verb={word}
      run={() => sandboxes[verb](sandbox.id)}
      onClose={onClose}
      onDone={() => {
        say(`${done}: ${sandbox.id}`);
        onClose();
        onDone();
      }}
    >
      <code>{sandbox.id}</code>
      <p>{text}</p>
    </Confirm>
  );
}

function Fork({ sandbox, onClose }: Props) {
  const [ttl, setTtl] = useState('');
  const [hard_ttl, setHardTtl] = useState('');
  const [wrong, setWrong] = useState<Record<string, string>>({});
  const run = async () => {
    const [pauses, deletes] = [durationOf(ttl), durationOf(hard_ttl)];
    const faults = {
      ...(pauses.wrong && { ttl: pauses.wrong }),
      ...(deletes.wrong && { hard_ttl: deletes.wrong }),
    };
    setWrong(faults);
    if (Object.keys(faults).length > 0) throw new Error('A duration is not valid.');
    const config = {
      ...(pauses.seconds === null ? {} : { ttl: pauses.seconds }),
      ...(deletes.seconds === null ? {} : { hard_ttl: deletes.seconds }),
    };
    const { sandbox: copy } = await sandboxes.fork(sandbox.id, config);
    say(`Forked: ${copy.id}`);
    onClose();
    goTo(linkTo(['sandboxes', copy.id]));
  };
  return (
    <Confirm title="Fork this sandbox?" verb="Fork" run={run} onClose={onClose} onDone={() => {}}>
      <code>{sandbox.id}</code>
      <p>
        Its files are copied while it stands still for a moment. The copy has an id of its own, the same
        webhook, an empty outbox, and starts paused.
      </p>
      <div class="fields">
        <Field
          label="Pauses after"
          value={ttl}
          onInput={setTtl}
          wrong={wrong.ttl}
          hint="like 30m; empty: as here"
        />
        <Field
          label="Is deleted after"
          value={hard_ttl}
          onInput={setHardTtl}
          wrong={wrong.hard_ttl}
          hint="like 24h; empty: as here"
        />
      </div>
    </Confirm>
  );
}

function Delete({ sandbox, onClose, onDone }: Props) {
  const [is_sure, setSure] = useState(false);
  return (
    <Confirm
      title="Delete this sandbox?"
      verb="Delete"
      is_danger
      is_ready={is_sure}
      run={() => sandboxes.remove(sandbox.id)}
      onClose={onClose}
      onDone={() => {
        say(`Deleted: ${sandbox.id}`);
        onClose();
        onDone();
      }}
    >
      <code>{sandbox.id}</code>
      <p>
        Its processes end and its files are gone for good. What its outbox has not delivered goes on from the
        manager's,
        {sandbox.webhook === null ? ' where it had a webhook.' : ' with sandbox.deleted behind it.'}
      </p>
      <Check label="Delete it with everything in it" checked={is_sure} onChange={setSure} />
    </Confirm>
  );
}
