import { ProcessBody, PtySizeBody, SignalBody } from '../schema/process-request.ts';
import {
  AttachQuery,
  OutputQuery,
  ProcessData,
  ProcessListData,
  ProcessListQuery,
  RemoveQuery,
  StartedData,
  StartQuery,
  StdinQuery,
  WaitQuery,
} from '../schema/processes.ts';
import { RESUMED, tagged } from './route-doc.ts';

const ONE = '/processes/:process_id';

/** What both programs document of the process routes. Contract section 4, "Processes". */
export const PROCESS_DOCS = tagged('processes', {
  'POST /processes': {
    operation_id: 'startProcess',
    summary: 'Start a process',
    query: StartQuery,
    body: ProcessBody,
    example: { command: ['python3', 'main.py'], process_id: 'build', cwd: '/work', env: { LANG: 'C.UTF-8' } },
    data: StartedData,
    status: 201,
    also: { 200: 'the same request has started this process before' },
    errors: ['conflict', 'too_many_requests', 'shutting_down'],
  },
  'GET /processes': {
    operation_id: 'listProcesses',
    summary: 'List processes, newest first',
    query: ProcessListQuery,
    data: ProcessListData,
  },
  [`GET ${ONE}`]: {
    operation_id: 'getProcess',
    summary: 'Get one process',
    data: ProcessData,
    errors: ['not_found'],
  },
  [`DELETE ${ONE}`]: {
    operation_id: 'endProcess',
    summary: 'End a process',
    query: RemoveQuery,
    data: ProcessData,
    errors: ['not_found'],
  },
  [`GET ${ONE}/output`]: {
    operation_id: 'readProcessOutput',
    summary: "Read a process's output",
    query: OutputQuery,
    media: 'text/event-stream',
    headers: RESUMED,
    errors: ['not_found', 'gone'],
  },
  [`GET ${ONE}/attach`]: {
    operation_id: 'attachProcess',
    summary: 'Attach to a process over a WebSocket',
    query: AttachQuery,
    status: 101,
    errors: ['not_found', 'gone'],
  },
  [`GET ${ONE}/wait`]: {
    operation_id: 'waitForProcess',
    summary: 'Wait until a process has ended or is ready',
    query: WaitQuery,
    data: ProcessData,
    errors: ['not_found', 'timeout', 'conflict'],
  },
  [`POST ${ONE}/stdin`]: {
    operation_id: 'writeProcessStdin',
    summary: "Write to a process's stdin",
    query: StdinQuery,
    status: 204,
    body_media: 'application/octet-stream',
    errors: ['not_found', 'conflict'],
  },
  [`POST ${ONE}/signal`]: {
    operation_id: 'signalProcess',
    summary: 'Send a signal to a process',
    body: SignalBody,
    example: { signal: 'SIGTERM', scope: 'group' },
    status: 204,
    errors: ['not_found', 'conflict'],
  },
  [`POST ${ONE}/resize`]: {
    operation_id: 'resizeProcess',
    summary: "Resize a process's terminal",
    body: PtySizeBody,
    status: 204,
    errors: ['not_found', 'conflict'],
  },
});
