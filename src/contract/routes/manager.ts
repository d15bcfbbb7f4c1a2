import { Type } from 'typebox';
import {
  DiscardedData,
  DiscardQuery,
  ReplayedData,
  ReplayQuery,
  TeamDeliveryData,
  TeamDeliveryPageData,
  TeamDeliveryQuery,
} from '../deliveries.ts';
import { FeedPageData, FeedQuery } from '../feed.ts';
import { NoQuery } from '../field.ts';
import { NodeData, NodeQuery } from '../node.ts';
import { PolicyBody, QuotaData } from '../quotas.ts';
import {
  ChangeBody,
  ClaimBody,
  ClaimedData,
  DeletedSandboxData,
  ForkBody,
  ForkedData,
  ListQuery,
  OneQuery,
  PausedData,
  RefreshBody,
  RefreshedData,
  ResumedData,
  SandboxData,
  SandboxListData,
  StatusData,
  SwitchBody,
} from '../sandboxes.ts';
import { UsagePageData, UsageQuery } from '../usage.ts';
import { DOCUMENT_ROUTE, healthRoutes } from './health.ts';
import { PASSED_ROUTES } from './passed.ts';
import { joinedRoutes, type ManagerRoute, RESUMED, type Routes } from './route.ts';

const admission = ['conflict', 'capacity_exhausted'] as const;
const reading = { tag: 'sandboxes', access: 'sandboxes:read', charge: 'request' } as const;
const writing = { tag: 'sandboxes', access: 'sandboxes:write', charge: 'request' } as const;

/** Sandboxes. Contract section 7, rows `/api/v1/sandboxes…`. */
const SANDBOX_ROUTES = {
  claimSandbox: {
    method: 'POST',
    path: '/api/v1/sandboxes',
    ...writing,
    charge: 'claim',
    summary: 'Claim a sandbox',
    query: NoQuery,
    body: ClaimBody,
    unbuilt: [
      'snapshot_id',
      'mounts',
      'config.services',
      'config.network.egress',
      'config.network.credentialBindings',
    ],
    data: ClaimedData,
    status: 201,
    is_body_optional: true,
    headers: { 'Idempotency-Key': 'a repeated key with the same body returns the first answer' },
    errors: [...admission, 'outbox_full', 'shutting_down'],
  },
  listSandboxes: {
    method: 'GET',
    path: '/api/v1/sandboxes',
    ...reading,
    summary: "List the team's sandboxes, newest first",
    query: ListQuery,
    data: SandboxListData,
  },
  getSandbox: {
    method: 'GET',
    path: '/api/v1/sandboxes/:sandbox_id',
    ...reading,
    summary: 'Get one sandbox',
    query: OneQuery,
    data: SandboxData,
  },
  changeSandbox: {
    method: 'PUT',
    path: '/api/v1/sandboxes/:sandbox_id',
    ...writing,
    summary: 'Change a sandbox',
    query: NoQuery,
    body: ChangeBody,
    unbuilt: ['config.services', 'config.network'],
    data: SandboxData,
    example: { config: { ttl: 3600, env_vars: { LANG: 'C.UTF-8' } } },
    errors: admission,
  },
  deleteSandbox: {
    method: 'DELETE',
    path: '/api/v1/sandboxes/:sandbox_id',
    ...writing,
    summary: 'Delete a sandbox',
    query: NoQuery,
    data: DeletedSandboxData,
    status: 202,
  },
  getSandboxStatus: {
    method: 'GET',
    path: '/api/v1/sandboxes/:sandbox_id/status',
    ...reading,
    summary: 'Get the status of a sandbox',
    query: NoQuery,
    data: StatusData,
  },
  refreshSandbox: {
    method: 'POST',
    path: '/api/v1/sandboxes/:sandbox_id/refresh',
    ...writing,
    summary: "Restart a sandbox's ttl",
    query: NoQuery,
    body: RefreshBody,
    data: RefreshedData,
    is_body_optional: true,
    errors: ['conflict'],
  },
  pauseSandbox: {
    method: 'POST',
    path: '/api/v1/sandboxes/:sandbox_id/pause',
    ...writing,
    summary: 'Pause a sandbox',
    query: NoQuery,
    body: SwitchBody,
    data: PausedData,
    is_body_optional: true,
    errors: ['conflict'],
  },
  resumeSandbox: {
    method: 'POST',
    path: '/api/v1/sandboxes/:sandbox_id/resume',
    ...writing,
    summary: 'Resume a sandbox',
    query: NoQuery,
    body: SwitchBody,
    data: ResumedData,
    is_body_optional: true,
    errors: admission,
  },
  forkSandbox: {
    method: 'POST',
    path: '/api/v1/sandboxes/:sandbox_id/fork',
    ...writing,
    summary: 'Fork a sandbox',
    query: NoQuery,
    body: ForkBody,
    data: ForkedData,
    status: 201,
    is_body_optional: true,
    errors: admission,
  },
} as const satisfies Routes<ManagerRoute>;

/** HTTP servers in sandboxes: the methods that documents can describe; servers may know others. */
const port = {
  method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
  access: 'sandboxes:write',
  charge: 'request',
  tag: 'ports',
  summary: 'Pass a request to an HTTP server on a port of the sandbox',
  media: '*/*',
  is_passed_on: true,
  errors: ['conflict', 'too_many_requests', 'bad_gateway'],
} as const;

const seeing = { tag: 'deliveries', access: 'webhooks:read', charge: 'request' } as const;
const sending = { tag: 'deliveries', access: 'sandboxes:write', charge: 'request' } as const;
const quotas = { tag: 'quotas', access: 'quota:read', charge: 'request', query: NoQuery } as const;
/** Operators' routes are not charged. Contract section 7, "Charging order". */
const policies = { tag: 'quotas', access: 'admin', charge: 'none', data: QuotaData } as const;
const policy_example = { kind: 'rate', limit_value: 100, interval_ms: 1000, burst_value: 200 };

const OTHER_ROUTES = {
  callPort: { path: '/api/v1/sandboxes/:sandbox_id/ports/:port', ...port },
  callPortPath: { path: '/api/v1/sandboxes/:sandbox_id/ports/:port/*', ...port },
  listEvents: {
    method: 'GET',
    path: '/api/v1/events',
    access: 'webhooks:read',
    charge: 'request',
    tag: 'events',
    summary: "List the team's lifecycle events in commit order; as text/event-stream, follow them",
    query: FeedQuery,
    data: FeedPageData,
    is_also_stream: true,
    headers: RESUMED,
    errors: ['too_many_requests'],
  },
  listTeamDeliveries: {
    method: 'GET',
    path: '/api/v1/webhooks/deliveries',
    ...seeing,
    summary: "List the team's deliveries, newest first",
    query: TeamDeliveryQuery,
    data: TeamDeliveryPageData,
  },
  discardTeamDeliveries: {
    method: 'DELETE',
    path: '/api/v1/webhooks/deliveries',
    ...sending,
    summary: "Discard all of the team's records in a state",
    query: DiscardQuery,
    data: DiscardedData,
  },
  getTeamDelivery: {
    method: 'GET',
    path: '/api/v1/webhooks/deliveries/:event_id',
    ...seeing,
    summary: "Get one of the team's deliveries with its body and attempts",
    data: TeamDeliveryData,
    errors: ['not_found'],
  },
  discardTeamDelivery: {
    method: 'DELETE',
    path: '/api/v1/webhooks/deliveries/:event_id',
    ...sending,
    summary: "Discard one of the team's records that is not sent any more",
    data: DiscardedData,
    errors: ['not_found', 'conflict'],
  },
  replayTeamDelivery: {
    method: 'POST',
    path: '/api/v1/webhooks/deliveries/:event_id/replay',
    ...sending,
    summary: "Send one of the team's records again",
    data: TeamDeliveryData,
    errors: ['not_found', 'conflict'],
  },
  replayTeamDeliveries: {
    method: 'POST',
    path: '/api/v1/webhooks/deliveries/replay',
    ...sending,
    summary: "Send all of the team's records in a state again",
    query: ReplayQuery,
    data: ReplayedData,
  },
  listQuotas: {
    method: 'GET',
    path: '/api/v1/quotas',
    ...quotas,
    summary: "List the team's quotas",
    data: Type.Array(QuotaData),
  },
  getQuota: {
    method: 'GET',
    path: '/api/v1/quotas/:dimension',
    ...quotas,
    summary: "Get one of the team's quotas",
    data: QuotaData,
  },
  setTeamQuota: {
    method: 'PUT',
    path: '/internal/v1/teams/:team_id/quotas/:dimension',
    ...policies,
    summary: "Override a team's quota",
    body: PolicyBody,
    example: policy_example,
  },
  unsetTeamQuota: {
    method: 'DELETE',
    path: '/internal/v1/teams/:team_id/quotas/:dimension',
    ...policies,
    summary: "Remove a team's override",
  },
  getNode: {
    method: 'GET',
    path: '/api/v1/node',
    access: 'admin',
    charge: 'request',
    tag: 'node',
    summary: "Get the node's budget, its use, and what teams hold of it",
    query: NodeQuery,
    data: NodeData,
  },
  listUsageWindows: {
    method: 'GET',
    path: '/api/v1/usage/windows',
    access: 'usage:read',
    charge: 'request',
    tag: 'usage',
    summary: "List the team's closed usage windows",
    query: UsageQuery,
    data: UsagePageData,
  },
  ...healthRoutes({ access: 'open', charge: 'none' }, ['unavailable'], {}),
  getDocument: { ...DOCUMENT_ROUTE, access: 'open', charge: 'none' },
} as const satisfies Routes<ManagerRoute>;

/** The routes of the manager's own. Contract section 7. */
export const MANAGER_ROUTES = joinedRoutes(SANDBOX_ROUTES, OTHER_ROUTES);

/** All routes that callers of the manager have, in the order of its document. */
export const API_ROUTES = joinedRoutes(joinedRoutes(SANDBOX_ROUTES, PASSED_ROUTES), OTHER_ROUTES);
