import { errorOfAnswer } from '../../client/error.ts';
import { authorization, refuse } from '../api/client.ts';
import { noteAway, ROOT } from '../api/connection.ts';
import { files, type PathQuery, queryOf } from '../api/files.ts';
import type { Place } from '../api/place.ts';
import { problemOf } from '../api/problem.ts';
import { Store } from '../base/store.ts';
import { save } from '../parts/download.ts';
import { inside } from './paths.ts';

/** A transfer of a file or tree, under way or ended. */
export interface Transfer {
  id: number;
  text: string;
  /** In bytes; `total` is null where it is not known. */
  done: number;
  total: number | null;
  state: 'running' | 'done' | 'failed' | 'stopped';
  problem: string | null;
  stop(): void;
}

/** The transfers of this page, newest first. */
export const transfers = new Store<readonly Transfer[]>([]);

/** Transfers at a time: browsers have few connections, and others wait for them. */
const AT_ONCE = 3;
const KEPT_MAX = 50;
let last_id = 0;
let running = 0;
const waiting: (() => void)[] = [];

function update(id: number, change: Partial<Transfer>): void {
  transfers.set(transfers.value.map((each) => (each.id === id ? { ...each, ...change } : each)));
}

/** Takes the ended transfers from the list. */
export function forgetEnded(): void {
  transfers.set(transfers.value.filter(({ state }) => state === 'running'));
}

type Progress = (done: number, total: number | null) => void;

async function transfer(
  text: string,
  run: (signal: AbortSignal, progress: Progress) => Promise<void>,
): Promise<boolean> {
  last_id += 1;
  const id = last_id;
  const ending = new AbortController();
  const entry: Transfer = {
    id,
    text,
    done: 0,
    total: null,
    state: 'running',
    problem: null,
    stop: () => ending.abort(),
  };
  transfers.set([entry, ...transfers.value].slice(0, KEPT_MAX));
  if (running >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  running += 1;
  try {
    if (ending.signal.aborted) throw new Error('stopped');
    await run(ending.signal, (done, total) => update(id, { done, total }));
    update(id, { state: 'done' });
    return true;
  } catch (error) {
    const is_stopped = ending.signal.aborted;
    update(id, {
      state: is_stopped ? 'stopped' : 'failed',
      problem: is_stopped ? null : problemOf(error).message,
    });
    return false;
  } finally {
    running -= 1;
    waiting.shift()?.();
  }
}

/** Saves a file, or a folder as a tar archive. */
export function download(
  place: Place,
  entry: { name: string; path: string; path_base64?: string; type: string },
) {
  const is_folder = entry.type === 'dir';
  return transfer(`${entry.name} ↓`, async (signal, progress) => {
    const query = queryOf(entry);
    const response = is_folder
      ? await files.archive(place, query, signal)
      : await files.read(place, query, signal);
    const length = response.headers.get('content-length');
    const total = length === null ? null : Number(length);
    const parts: BlobPart[] = [];
    let done = 0;
    const reader = (response.body as ReadableStream<Uint8Array<ArrayBuffer>>).getReader();
    for (;;) {
      const piece = await reader.read();
      if (piece.done) break;
      parts.push(piece.value);
      done += piece.value.length;
      progress(done, total);
    }
    save(is_folder ? `${entry.name || 'root'}.tar.gz` : entry.name, parts);
  });
}

/** What is dropped or chosen: a file, and its path below the folder that it goes to. */
export interface Upload {
  file: File;
  path: string;
}

/** Writes files into a folder, whatever is there; resolves when all have ended. */
export async function upload(place: Place, folder: string, uploads: readonly Upload[]): Promise<void> {
  await Promise.all(uploads.map((each) => uploadOne(place, folder, each)));
}

function uploadOne(place: Place, folder: string, { file, path }: Upload) {
  const query: PathQuery = { path: inside(folder, path) };
  return transfer(`${path} ↑`, (signal, progress) => putFile(place, query, file, signal, progress));
}

/** `fetch` does not tell how much of a body has been sent. */
function putFile(
  place: Place,
  path: PathQuery,
  file: File,
  signal: AbortSignal,
  progress: Progress,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const query = new URLSearchParams({ ...path, parents: 'true' });
    request.open('PUT', new URL(`api/v1${place.path}/files?${query}`, ROOT));
    request.setRequestHeader('content-type', 'application/octet-stream');
    for (const [name, value] of Object.entries(authorization())) request.setRequestHeader(name, value);
    request.upload.addEventListener('progress', ({ loaded }) => progress(loaded, file.size));
    request.addEventListener('load', () => {
      const { status, responseText: text } = request;
      if (status >= 200 && status < 300) return resolve();
      if (status === 401) refuse();
      reject(errorOfAnswer(new Response(null, { status }), jsonOf(text)));
    });
    request.addEventListener('error', () => {
      noteAway();
      reject(new Error('The connection broke.'));
    });
    request.addEventListener('abort', () => reject(new Error('Stopped.')));
    signal.addEventListener('abort', () => request.abort());
    request.send(file);
  });
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
