import { Type } from 'typebox';
import {
  ContextBody,
  ContextData,
  ContextExecData,
  ContextInputBody,
  ContextListData,
  ContextSignalBody,
} from '../schema/contexts.ts';
import { namedObject } from '../schema/field.ts';
import { DeletedData } from '../schema/files.ts';
import { PtySizeBody } from '../schema/process-request.ts';
import { ProcessListQuery } from '../schema/processes.ts';
import { tagged } from './route-doc.ts';

const ONE = '/contexts/:context_id';
const doneData = (what: string, title: string) => namedObject(title, { [what]: Type.Literal(true) });
const writing = ['not_found', 'conflict'] as const;

/** What both programs document of the context routes. Contract section 4, "Contexts". */
export const CONTEXT_DOCS = tagged('contexts', {
  'POST /contexts': {
    operation_id: 'createContext',
    summary: 'Create a context: start a process',
    body: ContextBody,
    example: {
      type: 'cmd',
      cmd: { command: ['sh', '-c', 'echo hello'] },
      cwd: '/work',
      wait_until_done: true,
    },
    data: ContextData,
    status: 201,
    errors: ['too_many_requests', 'not_implemented', 'shutting_down'],
  },
  'GET /contexts': {
    operation_id: 'listContexts',
    summary: 'List contexts, newest first',
    query: ProcessListQuery,
    data: ContextListData,
  },
  [`GET ${ONE}`]: {
    operation_id: 'getContext',
    summary: 'Get one context with its output',
    data: ContextData,
    errors: ['not_found'],
  },
  [`DELETE ${ONE}`]: {
    operation_id: 'endContext',
    summary: 'End a context',
    data: DeletedData,
    errors: ['not_found'],
  },
  [`POST ${ONE}/exec`]: {
    operation_id: 'execInContext',
    summary: 'Write to a context and wait until it has ended',
    body: ContextInputBody,
    data: ContextExecData,
    errors: writing,
  },
  [`POST ${ONE}/input`]: {
    operation_id: 'writeContextInput',
    summary: 'Write to a context',
    body: ContextInputBody,
    data: doneData('written', 'ContextWritten'),
    errors: writing,
  },
  [`POST ${ONE}/resize`]: {
    operation_id: 'resizeContext',
    summary: "Resize a context's terminal",
    body: PtySizeBody,
    data: doneData('resized', 'ContextResized'),
    errors: writing,
  },
  [`POST ${ONE}/signal`]: {
    operation_id: 'signalContext',
    summary: 'Send a signal to a context',
    body: ContextSignalBody,
    data: doneData('signaled', 'ContextSignaled'),
    errors: writing,
  },
  [`POST ${ONE}/restart`]: {
    operation_id: 'restartContext',
    summary: 'End a context and start it anew',
    data: ContextData,
    errors: [...writing, 'too_many_requests', 'shutting_down'],
  },
  [`GET ${ONE}/ws`]: {
    operation_id: 'attachContext',
    summary: 'Attach to a context over a WebSocket',
    status: 101,
    errors: writing,
  },
});
