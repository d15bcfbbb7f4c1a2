import { useRef, useState } from 'preact/hooks';
import type { FileEntry } from '../../contract/files.ts';
import { files } from '../api/files.ts';
import type { Place } from '../api/place.ts';
import { useResource } from '../api/resource.ts';
import { visible } from '../base/format.ts';
import { linkTo, useRoute } from '../base/router.ts';
import { CursorPages } from '../parts/cursor-pages.tsx';
import { Icon } from '../parts/icon.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { uploadsFrom, uploadsOf } from './dropped.ts';
import { FileDialog, type FileTask } from './file-dialogs.tsx';
import { FilePreview } from './file-preview.tsx';
import { FileTable } from './file-table.tsx';
import { trailOf } from './paths.ts';
import { TransferList } from './transfer-list.tsx';
import { download, type Upload, upload } from './transfers.ts';

const REFRESH_MS = 10_000;

/** The files of a sandbox: browsed, looked into, changed, and moved both ways. */
export function FilesView({ place }: { place: Place }) {
  const { query } = useRoute();
  const path = query.get('path') || '/';
  const opened = query.get('open');
  const cursor = query.get('cursor');
  const [task, setTask] = useState<FileTask | null>(null);
  const [is_over, setOver] = useState(false);
  const list = useResource(
    JSON.stringify(['files', place.path, path, cursor]),
    (signal) => files.list(place, { path }, cursor, signal),
    REFRESH_MS,
  );
  const take = async (uploads: readonly Upload[]) => {
    if (uploads.length === 0) return;
    await upload(place, path, uploads);
    list.reload();
  };
  return (
    <div class="page">
      <section
        class={`panel${is_over ? ' is-target' : ''}`}
        aria-label="Files"
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          if (event.dataTransfer) void uploadsOf(event.dataTransfer).then(take);
        }}
      >
        <div class="panel-head">
          <Trail place={place} path={path} />
          <Tools
            path={path}
            onTask={setTask}
            onFiles={(chosen) => void take(chosen)}
            onReload={list.reload}
          />
        </div>
        <Loaded resource={list}>
          {(page) => (
            <>
              <FileTable
                place={place}
                page={page}
                onTask={setTask}
                onDownload={(entry: FileEntry) => void download(place, entry)}
              />
              {(page.next_cursor !== null || cursor !== null) && (
                <CursorPages cursor={cursor} next_cursor={page.next_cursor} words={['First', 'More']} />
              )}
            </>
          )}
        </Loaded>
      </section>
      <TransferList />
      {opened !== null && <FilePreview key={opened} place={place} path={opened} onChange={list.reload} />}
      {task && (
        <FileDialog
          place={place}
          task={task}
          folder={path}
          onClose={() => setTask(null)}
          onDone={list.reload}
        />
      )}
    </div>
  );
}

function Trail({ place, path }: { place: Place; path: string }) {
  const trail = trailOf(path);
  return (
    <nav class="trail mono" aria-label="Folders">
      {trail.map(({ name, path: each }, index) => (
        <span key={each}>
          {index > 1 && <span class="muted">/</span>}
          <a
            href={linkTo([...place.link, 'files'], { path: each })}
            aria-current={index === trail.length - 1 ? 'page' : undefined}
          >
            <bdi>{visible(name)}</bdi>
          </a>
        </span>
      ))}
    </nav>
  );
}

interface ToolsProps {
  path: string;
  onTask(task: FileTask): void;
  onFiles(uploads: Upload[]): void;
  onReload(): void;
}

function Tools({ path, onTask, onFiles, onReload }: ToolsProps) {
  const file = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const onChoose = (event: Event) => {
    const input = event.currentTarget as HTMLInputElement;
    onFiles(uploadsFrom(input.files));
    input.value = '';
  };
  return (
    <div class="actions">
      <input ref={file} type="file" multiple hidden aria-label="Files to upload" onChange={onChoose} />
      <input
        ref={folder}
        type="file"
        hidden
        aria-label="Folder to upload"
        onChange={onChoose}
        // Folders are chosen by an attribute that has no type.
        {...{ webkitdirectory: true }}
      />
      <button type="button" class="button is-small" onClick={() => file.current?.click()}>
        <Icon name="up" />
        Upload files
      </button>
      <button type="button" class="button is-small" onClick={() => folder.current?.click()}>
        <Icon name="up" />
        Upload a folder
      </button>
      <button type="button" class="button is-small" onClick={() => onTask({ kind: 'folder' })}>
        New folder
      </button>
      <button type="button" class="button is-small" data-key="n" onClick={() => onTask({ kind: 'file' })}>
        New file
      </button>
      <button
        type="button"
        class="button is-small"
        data-key="r"
        title={`Load ${path} again (r)`}
        onClick={onReload}
      >
        <Icon name="refresh" />
        Reload
      </button>
    </div>
  );
}
