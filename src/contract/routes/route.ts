import type { Static, TSchema } from 'typebox';
import type { ControlScope } from '../control-socket.ts';
import type { ErrorCode } from '../errors.ts';
import type { Scope } from '../tokens.ts';
import type { TransferWay } from '../transfer.ts';
import type { Feature } from '../versions.ts';

/** A method that documents can describe. */
export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';

/**
 * A route, under its operation id in a table: all that is known of it but its handler. Registration, guard, documents, the
 * pass-through and the client read the same row.
 */
export interface Route {
  method: Method | readonly Method[];
  /** A name after a colon stands for one segment, `*` for the rest. */
  path: string;
  /** One of `TAGS`. */
  tag: Tag;
  summary: string;
  /** The schema of the query; without it, a query is not looked at. */
  query?: TSchema;
  /** The schema of the body, if it is JSON. */
  body?: TSchema;
  /** The handler takes the query and the bytes of the JSON as they came, and checks them by itself. */
  is_raw?: boolean;
  /** The request is for another server, which says what it may be: its body is a stream that nobody here looks at. */
  is_passed_on?: boolean;
  /** The body may be left out. */
  is_body_optional?: boolean;
  /** A body of a typical request, where not every field can be given together with the others. */
  example?: unknown;
  /** The type of a body that is not JSON: a stream of any type and length, which the handler reads. */
  body_media?: string;
  /** Headers of the request with their meaning. */
  headers?: Readonly<Record<string, string>>;
  /** The status of a success; 200 if undefined. */
  status?: number;
  /** Further statuses of a success, with what they mean. */
  also?: Readonly<Record<number, string>>;
  /** The schema of `data` in the answer. */
  data?: TSchema;
  /** The type of an answer that is not JSON, or of one without the envelope, such as `text/plain`. */
  media?: string;
  /** The schema of an answer of that type; without it, of bytes or text. */
  content?: TSchema;
  /** The success may also be a stream of server-sent events, where the caller accepts one. */
  is_also_stream?: boolean;
  /** Headers of a success with their meaning. */
  answer_headers?: Readonly<Record<string, string>>;
  /** The errors of the route's own; those of every route are not among them. */
  errors?: readonly ErrorCode[];
}

/**
 * What a daemon's route requires of its callers. Contract section 4, `--control-token-file` and `--control-socket`.
 * - `health`: nothing, even while the daemon starts
 * - `open`: nothing
 * - `read`, `write`, `manage`: the control token, or on the control socket at least this scope
 * - `socket`: the scope `manage` on the control socket; never served over TCP
 */
export type DaemonAccess = 'health' | 'open' | ControlScope | 'socket';

/** How a manager passes a route of its sandboxes' daemons through. */
export interface Passed {
  /** Which sandboxes answer it; `up` is running or paused: a paused one keeps its deliveries, events and files readable. */
  answered_by: 'running' | 'up';
  /** Whether a call counts as use of the sandbox, which keeps it from being idle. */
  is_use: boolean;
  /** Where its bytes are counted. */
  way: TransferWay;
  /** What an older daemon may not have: it is asked first. */
  needs?: Feature;
}

/** A route of the daemon. */
export interface DaemonRoute extends Route {
  method: Method;
  access: DaemonAccess;
  /** Others wait for its answer, and it costs little: it does not wait for its turn. */
  is_light?: boolean;
  /** Only if callers of the manager can reach it. */
  passed?: Passed;
}

/** What a manager's route requires of its callers: nothing, or a token that has this scope. */
export type ManagerAccess = 'open' | Scope;

/** A route of the manager's own. */
export interface ManagerRoute extends Route {
  access: ManagerAccess;
  /** What a call is charged to: the team's requests, those and its claims, or nothing, as those of operators. */
  charge: 'request' | 'claim' | 'none';
  /** Keys of the body that clients of this API's family know and the manager does not have. */
  unbuilt?: readonly string[];
}

/** Routes by their operation ids. */
export type Routes<Row extends Route = Route> = Readonly<Record<string, Row>>;

/** Two tables as one. The compiler refuses an id that is in both. */
export function joinedRoutes<const One extends Routes, const Other extends Routes>(
  one: One,
  other: Other & { readonly [Id in keyof One & keyof Other]: never },
): One & Other {
  return { ...one, ...other };
}

/** The parameters of a path, by name. */
export type PathParameters<Path extends string> = {
  [Name in ParameterIn<Path>]: string;
};
type ParameterIn<Path extends string> = Path extends `${infer Segment}/${infer Rest}`
  ? NameOf<Segment> | ParameterIn<Rest>
  : NameOf<Path>;
type NameOf<Segment extends string> = Segment extends `:${infer Name}` ? Name : never;

/** A row's query, as its handler gets it: converted, and with the defaults. */
export type QueryOf<Row> = Row extends { is_raw: true }
  ? unknown
  : Row extends { query: infer Query extends TSchema }
    ? Static<Query>
    : unknown;

/** A row's body, as its handler gets it; undefined where there may be none, because its schema asks for no field. */
export type BodyOf<Row> = Row extends { is_raw: true }
  ? Uint8Array | undefined
  : Row extends { body: infer Body extends TSchema }
    ? Record<never, never> extends Static<Body>
      ? Static<Body> | undefined
      : Static<Body>
    : undefined;

/** The `data` of a row's answer, or the text of one that is not JSON. */
export type DataOf<Row> = Row extends { data: infer Data extends TSchema } ? Static<Data> : unknown;

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

/** The header by which a stream is resumed. */
export const RESUMED = { 'Last-Event-ID': 'the id of the last event received' } as const;
