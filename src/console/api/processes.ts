import type { ProcessView } from '../../contract/processes.ts';
import { call } from './http.ts';
import type { Place } from './place.ts';

/** A process to start. Contract section 4, `POST /processes`. */
export interface ProcessRequest {
  command?: string[];
  shell?: string;
  name?: string;
  cwd?: string;
  user?: string;
  env?: Record<string, string>;
  stdin?: 'pipe' | 'ignore';
  timeout_ms?: number;
  restart?: { policy: string; max_restarts?: number };
  pty?: { cols: number; rows: number };
}

const of = ({ path }: Place, process_id: string) => `${path}/processes/${encodeURIComponent(process_id)}`;

/** The routes of processes. Contract section 4, "Processes". */
export const processes = {
  list: (place: Place, signal: AbortSignal) =>
    call<{ processes: ProcessView[] }>('GET', `${place.path}/processes`, { signal }),
  one: (place: Place, process_id: string, signal: AbortSignal) =>
    call<ProcessView>('GET', of(place, process_id), { signal }),
  start: (place: Place, request: ProcessRequest) =>
    call<ProcessView>('POST', `${place.path}/processes`, { json: request }),
  signal: (place: Place, process_id: string, signal: string) =>
    call('POST', `${of(place, process_id)}/signal`, { json: { signal } }),
  stop: (place: Place, process_id: string) => call<ProcessView>('DELETE', of(place, process_id)),
  /** Sends a text to its standard input. */
  write: (place: Place, process_id: string, text: string) =>
    call('POST', `${of(place, process_id)}/stdin`, {
      body: text,
      headers: { 'content-type': 'application/octet-stream' },
    }),
  outputPath: (place: Place, process_id: string) => `${of(place, process_id)}/output`,
  attachPath: (place: Place, process_id: string) => `${of(place, process_id)}/attach`,
};
