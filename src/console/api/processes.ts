import type { paths } from '../../client/openapi/daemon-api.ts';
import type { InitOf } from '../../client/routes.ts';
import type { Place } from './place.ts';

/** A process to start. Contract section 4, `POST /processes`. */
export type ProcessRequest = NonNullable<InitOf<paths, '/api/v1/processes', 'post'>['body']>;

type Signal = InitOf<paths, '/api/v1/processes/{process_id}/signal', 'post'>['body']['signal'];

const ONE = '/api/v1/processes/{process_id}';

/** The routes of processes. Contract section 4, "Processes". */
export const processes = {
  /** A page, newest first. */
  list: ({ sandbox }: Place, query: { cursor?: string }, signal: AbortSignal) =>
    sandbox.GET('/api/v1/processes', { query, signal }),
  one: ({ sandbox }: Place, process_id: string, signal: AbortSignal) =>
    sandbox.GET(ONE, { path: { process_id }, signal }),
  start: ({ sandbox }: Place, body: ProcessRequest) => sandbox.POST('/api/v1/processes', { body }),
  signal: ({ sandbox }: Place, process_id: string, signal: Signal) =>
    sandbox.POST(`${ONE}/signal`, { path: { process_id }, body: { signal } }),
  stop: ({ sandbox }: Place, process_id: string) => sandbox.DELETE(ONE, { path: { process_id } }),
  /** All of a stream that is kept. */
  output: ({ sandbox }: Place, process_id: string, stream: 'stdout' | 'stderr') =>
    sandbox.GET(`${ONE}/output`, {
      path: { process_id },
      query: { stream },
      headers: { accept: 'application/octet-stream' },
    }),
};
