import type { TSchema } from 'typebox';
import type { ErrorCode } from '../errors.ts';

/** The documentation of a route, in addition to its path and the schemas that its requests are checked by. */
export interface RouteDoc {
  /** The unique name of the operation, from which clients make the name of a method. */
  operation_id: string;
  /** One of `TAGS`. */
  tag: Tag;
  summary: string;
  /** The schema of `data` in the answer. */
  data?: TSchema | undefined;
  /** The type of an answer that is not JSON, or of one without the envelope, such as `text/plain`. */
  media?: string;
  /** The schema of an answer of that type; without it, of bytes or text. */
  content?: TSchema;
  /** The success may also be a stream of server-sent events, where the caller accepts one. */
  is_also_stream?: boolean;
  /** The status of a success; 200 if undefined. */
  status?: number;
  /** Further statuses of a success, with what they mean. */
  also?: Readonly<Record<number, string>>;
  /** The schema of a query that the route checks by itself, or passes on. */
  query?: TSchema;
  /** The schema of a body that the route checks by itself, or passes on. */
  body?: TSchema;
  /** A body of a typical request, where not every field can be given together with the others. */
  example?: unknown;
  /** The type of a body that is not JSON. */
  body_media?: string;
  /** The body may be left out. */
  is_body_optional?: boolean;
  /** Headers of the request with their meaning. */
  headers?: Readonly<Record<string, string>>;
  /** Headers of a success with their meaning. */
  answer_headers?: Readonly<Record<string, string>>;
  /** The errors of the route's own; those of every route are not among them. */
  errors?: readonly ErrorCode[];
}

/** The documentation of a request that a webhook gets. */
export interface WebhookDoc {
  /** The unique name of the operation. */
  operation_id: string;
  /** One of `TAGS`. */
  tag: Tag;
  summary: string;
  /** Headers of every request with their meaning. */
  headers: Readonly<Record<string, string>>;
  /** Headers that a request may have, with their meaning. */
  optional_headers: Readonly<Record<string, string>>;
  /** The schema of the body. */
  body: TSchema;
  /** What the receiver's answers mean, by status. */
  answers: Readonly<Record<string, string>>;
}

/** The subjects of the routes of both programs. */
export const TAGS = {
  sandboxes: 'Claim, change, pause, fork and delete sandboxes.',
  sandbox: 'The state of the sandbox that the daemon runs in.',
  processes: 'Start and end processes, follow their output, and write to them.',
  contexts: 'Processes as another client calls them.',
  files: 'Read, write, list, move, watch and archive files with the rights of an account.',
  ports: 'HTTP servers in sandboxes.',
  events: 'Publish events, and follow them.',
  deliveries: 'What was delivered to the webhook, or not, and how to send it again.',
  quotas: "A team's limits, and what is left of them.",
  node: 'What the node has for sandboxes, and who holds it.',
  usage: 'Closed windows of what sandboxes used.',
  health: 'Liveness, readiness, metrics and this document.',
} as const;

/** The subject of a route. */
export type Tag = keyof typeof TAGS;

/** The documentation of routes by method and path. */
export type RouteDocs = Readonly<Record<string, RouteDoc>>;

/** Gives the routes of one subject their tag. */
export function tagged(tag: Tag, docs: Readonly<Record<string, Omit<RouteDoc, 'tag'>>>): RouteDocs {
  return Object.fromEntries(Object.entries(docs).map(([route, doc]) => [route, { ...doc, tag }]));
}

/** The header by which a stream is resumed. */
export const RESUMED = { 'Last-Event-ID': 'the id of the last event received' } as const;
