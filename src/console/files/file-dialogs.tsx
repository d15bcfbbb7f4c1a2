import { useState } from 'preact/hooks';
import type { FileEntry } from '../../contract/files.ts';
import { files, queryOf } from '../api/files.ts';
import type { Place } from '../api/place.ts';
import { visible } from '../base/format.ts';
import { setQuery } from '../base/router.ts';
import { Confirm } from '../parts/confirm.tsx';
import { Field } from '../parts/field.tsx';
import { inside } from './paths.ts';

/** What is to be done to files. */
export type FileTask = { kind: 'folder' | 'file' } | { kind: 'move' | 'remove'; entry: FileEntry };

interface DialogProps {
  place: Place;
  task: FileTask;
  folder: string;
  onClose(): void;
  onDone(): void;
}

/** Asks before files are changed, and for names. */
export function FileDialog({ place, task, folder, onClose, onDone }: DialogProps) {
  const done = () => {
    onClose();
    onDone();
  };
  const shared = { place, onClose, onDone: done };
  if (task.kind === 'remove') return <Remove {...shared} entry={task.entry} />;
  if (task.kind === 'move') return <Move {...shared} entry={task.entry} />;
  return <Make {...shared} kind={task.kind} folder={folder} />;
}

interface TaskProps {
  place: Place;
  onClose(): void;
  onDone(): void;
}

function Make({
  place,
  kind,
  folder,
  onClose,
  onDone,
}: TaskProps & { kind: 'folder' | 'file'; folder: string }) {
  const [name, setName] = useState('');
  const path = inside(folder, name.trim());
  const run = async () => {
    if (kind === 'folder') return files.makeFolder(place, path);
    await files.write(place, { path }, '', null);
    setQuery({ open: path });
  };
  return (
    <Confirm
      title={`New ${kind}`}
      verb="Make"
      is_ready={name.trim() !== ''}
      run={run}
      onClose={onClose}
      onDone={onDone}
    >
      <Field label="Name" value={name} onInput={setName} is_first hint={<>in {visible(folder)}</>} />
    </Confirm>
  );
}

function Move({ place, entry, onClose, onDone }: TaskProps & { entry: FileEntry }) {
  const [to, setTo] = useState(entry.path);
  return (
    <Confirm
      title="Move or rename"
      verb="Move"
      is_ready={to !== entry.path && to.startsWith('/')}
      run={() => files.move(place, entry.path, to)}
      onClose={onClose}
      onDone={onDone}
    >
      <Field label="To" value={to} onInput={setTo} is_first hint="What is there already is not replaced." />
    </Confirm>
  );
}

function Remove({ place, entry, onClose, onDone }: TaskProps & { entry: FileEntry }) {
  const is_folder = entry.type === 'dir' && !entry.is_link;
  return (
    <Confirm
      title={is_folder ? 'Remove this folder?' : 'Remove this file?'}
      verb="Remove"
      is_danger
      run={() => files.remove(place, queryOf(entry))}
      onClose={onClose}
      onDone={onDone}
    >
      <code class="text">{visible(entry.path)}</code>
      <p>{is_folder ? 'Everything in it goes with it, for good.' : 'It is gone for good.'}</p>
    </Confirm>
  );
}
