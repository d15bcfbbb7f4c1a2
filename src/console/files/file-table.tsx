import type { FileEntry, FilePage } from '../../contract/files.ts';
import type { Place } from '../api/place.ts';
import { bytes, visible } from '../base/format.ts';
import { linkTo } from '../base/router.ts';
import { Icon } from '../parts/icon.tsx';
import { Empty } from '../parts/notes.tsx';
import { onRowKey } from '../parts/rows.ts';
import { Time } from '../parts/time.tsx';
import type { FileTask } from './file-dialogs.tsx';

interface TableProps {
  place: Place;
  page: FilePage;
  onTask(task: FileTask): void;
  onDownload(entry: FileEntry): void;
}

/** The entries of a folder, folders first. */
export function FileTable({ place, page, onTask, onDownload }: TableProps) {
  if (page.entries.length === 0)
    return <Empty title="This folder is empty">Drop files or folders here.</Empty>;
  const folders_first = page.entries.toSorted((a, b) => Number(b.type === 'dir') - Number(a.type === 'dir'));
  return (
    <div class="table-frame">
      <table class="table table-cards" onKeyDown={onRowKey}>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col" class="is-right">
              Size
            </th>
            <th scope="col">Mode</th>
            <th scope="col">Owner</th>
            <th scope="col">Changed</th>
            <th scope="col">
              <span class="unseen">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {folders_first.map((entry) => (
            <Row
              key={entry.path_base64 ?? entry.path}
              place={place}
              folder={page.path}
              entry={entry}
              onTask={onTask}
              onDownload={onDownload}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps extends Omit<TableProps, 'page'> {
  folder: string;
  entry: FileEntry;
}

function Row({ place, folder, entry, onTask, onDownload }: RowProps) {
  const { name, path, path_base64, type, size, mode, user, group, mod_time, is_link, link_target } = entry;
  const shown = visible(name);
  // Its name is no text, so that no link can hold it.
  const can_open = path_base64 === undefined && (type === 'dir' || type === 'file');
  const query = type === 'dir' ? { path } : { path: folder, open: path };
  return (
    <tr>
      <td class="is-wide">
        <span class="file-name">
          <Icon name={is_link ? 'link' : type === 'dir' ? 'files' : 'file'} />
          {can_open ? (
            <a class="row-link" href={linkTo([...place.link, 'files'], query)}>
              <bdi>{shown}</bdi>
            </a>
          ) : (
            <bdi>{shown}</bdi>
          )}
          {is_link && <span class="muted">→ {visible(link_target ?? '')}</span>}
        </span>
      </td>
      <td class="is-right number">{type === 'file' ? bytes(size) : ''}</td>
      <td class="mono muted">{mode}</td>
      <td class="muted">
        {visible(user)}:{visible(group)}
      </td>
      <td>
        <Time at={mod_time} is_relative />
      </td>
      <td>
        <div class="row-actions">
          {(type === 'file' || type === 'dir') && (
            <button type="button" class="button is-small" onClick={() => onDownload(entry)}>
              Save<span class="unseen"> {shown}</span>
            </button>
          )}
          {path_base64 === undefined && (
            <button type="button" class="button is-small" onClick={() => onTask({ kind: 'move', entry })}>
              Move<span class="unseen"> {shown}</span>
            </button>
          )}
          <button type="button" class="button is-small" onClick={() => onTask({ kind: 'remove', entry })}>
            Remove<span class="unseen"> {shown}</span>
          </button>
        </div>
      </td>
    </tr>
  );
}
