import type { RouteDoc } from '../../contract/documents/route-doc.ts';
import {
  ClaimedData,
  DeletedSandboxData,
  ForkedData,
  PausedData,
  RefreshedData,
  ResumedData,
  SandboxData,
  SandboxListData,
  StatusData,
} from './schemas.ts';

const tag = 'sandboxes';
const admission = ['conflict', 'capacity_exhausted'] as const;

/** What `/openapi.json` says of the sandbox routes beside their schemas. Source: contract section 7, rows `/api/v1/sandboxes…`. */
export const SANDBOX_DOCS = {
  claim: {
    operation_id: 'claimSandbox',
    tag,
    summary: 'Claim a sandbox',
    data: ClaimedData,
    status: 201,
    is_body_optional: true,
    headers: { 'Idempotency-Key': 'a repeated key with the same body returns the first answer' },
    errors: [...admission, 'outbox_full', 'shutting_down'],
  },
  list: {
    operation_id: 'listSandboxes',
    tag,
    summary: "List the team's sandboxes, newest first",
    data: SandboxListData,
  },
  record: { operation_id: 'getSandbox', tag, summary: 'Get one sandbox', data: SandboxData },
  status: { operation_id: 'getSandboxStatus', tag, summary: 'Get the status of a sandbox', data: StatusData },
  change: {
    operation_id: 'changeSandbox',
    tag,
    summary: 'Change a sandbox',
    data: SandboxData,
    example: { config: { ttl: 3600, env_vars: { LANG: 'C.UTF-8' } } },
    errors: admission,
  },
  refresh: {
    operation_id: 'refreshSandbox',
    tag,
    summary: "Restart a sandbox's ttl",
    data: RefreshedData,
    is_body_optional: true,
    errors: ['conflict'],
  },
  remove: {
    operation_id: 'deleteSandbox',
    tag,
    summary: 'Delete a sandbox',
    data: DeletedSandboxData,
    status: 202,
  },
  pause: {
    operation_id: 'pauseSandbox',
    tag,
    summary: 'Pause a sandbox',
    data: PausedData,
    is_body_optional: true,
    errors: ['conflict'],
  },
  resume: {
    operation_id: 'resumeSandbox',
    tag,
    summary: 'Resume a sandbox',
    data: ResumedData,
    is_body_optional: true,
    errors: admission,
  },
  fork: {
    operation_id: 'forkSandbox',
    tag,
    summary: 'Fork a sandbox',
    data: ForkedData,
    status: 201,
    is_body_optional: true,
    errors: admission,
  },
} as const satisfies Readonly<Record<string, RouteDoc>>;
