import {
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
} from 'node:http';
import { type Duplex, Readable } from 'node:stream';
import type { Static, TSchema } from 'typebox';
import { HOP_BY_HOP } from '../../base/http/hop-by-hop.ts';
import { connectInside } from '../../base/http/inner-connection.ts';
import { ApiError, ERROR_CODES, invalidField } from '../../contract/errors.ts';
import { API_ROUTES } from '../../contract/routes/manager.ts';
import type { DataOf, PathParameters, Route } from '../../contract/routes/route.ts';

/** Who a door of the manager's calls for: with the rights of that token, and nothing else. */
export interface DoorCaller {
  /** Null where its caller has shown none. */
  token: string | null;
  /** The address of its caller, among which requests are shared out until they are authenticated. */
  address: string;
}

type Rows = typeof API_ROUTES;
/** The operation id of a route that callers of the manager have. */
export type CallId = keyof Rows;

/** An answer that is passed on as it comes; who does not read it to its end destroys it. */
export interface StreamedAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Readable;
}

/** A WebSocket whose handshake is done. */
export interface UpgradedAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  socket: Duplex;
  /** What the other side has sent already. */
  head: Buffer;
}

/** What a call takes, by the row of its route. */
export type CallInput<Row extends Route = Route, Follow extends boolean = boolean> = {
  /** As the caller's program has sent them; those of its connection and its `Authorization` are left out. */
  headers?: IncomingHttpHeaders;
  /** Ends the call. */
  signal?: AbortSignal;
  /** Has a route that can do so answer with a stream of server-sent events. */
  follow?: Follow;
} & ParamsIn<Row['path']> &
  QueryIn<Row> &
  BodyIn<Row> &
  (Row['method'] extends readonly (infer Method)[] ? { method: Method } : unknown);
type FollowOf<Row> = Row extends { is_also_stream: true } ? boolean : false;

type ParamsIn<Path extends string> = string extends Path
  ? unknown
  : keyof ParametersIn<Path> extends never
    ? unknown
    : { params: ParametersIn<Path> };
type ParametersIn<Path extends string> = PathParameters<Path> &
  (Path extends `${string}*` ? { '*': string } : unknown);
type QueryIn<Row> = Row extends { is_passed_on: true }
  ? { query?: Record<string, unknown> }
  : Row extends { query: infer Query extends TSchema }
    ? { query?: Partial<Static<Query>> }
    : unknown;
type BodyIn<Row> = Row extends { is_passed_on: true } | { body_media: string }
  ? { body?: Readable | Uint8Array | string }
  : Row extends { body: infer Body extends TSchema }
    ? Row extends { is_body_optional: true }
      ? { body?: Static<Body> }
      : { body: Static<Body> }
    : unknown;

/** What a call resolves with: the `data` of its route, or a stream where the route answers with one. */
export type CallAnswer<Row extends Route, Follow extends boolean = false> = Row extends { status: 101 }
  ? UpgradedAnswer
  : Row extends { media: string }
    ? StreamedAnswer
    : Row extends { is_also_stream: true }
      ? Follow extends true
        ? StreamedAnswer
        : DataOf<Row>
      : Row extends { status: 204 }
        ? undefined
        : DataOf<Row>;

/**
 * Calls a route of the manager as a request over the network does: with the same guards, charges and checks. It is all that
 * a door has of the manager. Rejects with the ApiError that a client would be answered, or with an AbortError; what a server
 * in a sandbox answers is never an error. What a sandbox's daemon answers is as little checked as for other clients.
 */
export type ManagerCall = <Id extends CallId, Follow extends FollowOf<Rows[Id]> = false>(
  route: Id,
  caller: DoorCaller,
  input: CallInput<Rows[Id], Follow>,
) => Promise<CallAnswer<Rows[Id], Follow>>;

/** Most bytes of an answer that is read whole: sandboxes decide how long some are. */
const ANSWER_MAX_BYTES = 16 * 1024 * 1024;
/** Most bytes of all such answers that are being read. */
const ANSWERS_MAX_BYTES = 64 * 1024 * 1024;

/** The calls of doors to a server that need not listen to anybody else. */
export function makeCall(server: Server): ManagerCall {
  const read = { bytes: 0 };
  return async (route, caller, input) => {
    const row: Route = API_ROUTES[route];
    const given = input as AnyInput;
    const { answer, upgraded, head } = await answered(server, row, caller, given);
    const { statusCode: status = 0, headers } = answer;
    const is_stream = row.media !== undefined || given.follow === true;
    const result =
      upgraded !== null
        ? { status, headers, socket: upgraded, head }
        : is_stream && (status < 400 || row.is_passed_on === true)
          ? { status, headers, body: answer }
          : await dataOf(answer, status, read);
    return result as CallAnswer<Rows[typeof route], never>;
  };
}

interface AnyInput {
  params?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, unknown>>;
  body?: unknown;
  method?: string;
  headers?: IncomingHttpHeaders;
  signal?: AbortSignal;
  follow?: boolean;
}

interface Answered {
  answer: IncomingMessage;
  upgraded: Duplex | null;
  head: Buffer;
}

function answered(server: Server, row: Route, caller: DoorCaller, input: AnyInput): Promise<Answered> {
  const { signal, method = String(row.method) } = input;
  const path = targetOf(row, input);
  const headers = headersOf(row, caller, input);
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest({
      createConnection: () => connectInside(server, caller.address),
      ...{ method, path, headers },
      ...(signal === undefined ? {} : { signal }),
    });
    outgoing.once('response', (answer) => resolve({ answer, upgraded: null, head: Buffer.alloc(0) }));
    if (row.status === 101) {
      outgoing.once('upgrade', (answer, upgraded, head) => resolve({ answer, upgraded, head }));
    }
    outgoing.on('error', (error) => reject(signal?.aborted ? error : ended()));
    const { body } = input;
    if (body instanceof Readable) {
      body.once('error', (error) => outgoing.destroy(error));
      body.pipe(outgoing);
    } else outgoing.end(isBytes(row) ? body : body === undefined ? undefined : JSON.stringify(body));
  });
}

/** Whether the body is what the caller's program has sent, not JSON that is made here. */
function isBytes({ body_media, is_passed_on }: Route): boolean {
  return body_media !== undefined || is_passed_on === true;
}

function headersOf(row: Route, { token }: DoorCaller, { headers = {}, body, follow }: AnyInput) {
  const kept = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name) && !SET_HERE.has(name));
  return {
    ...Object.fromEntries(kept),
    host: 'localhost',
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    ...(body === undefined || isBytes(row) ? {} : { 'content-type': 'application/json' }),
    ...(follow === true ? { accept: 'text/event-stream' } : {}),
    ...(row.status === 101 ? { connection: 'Upgrade', upgrade: 'websocket' } : {}),
  };
}
const SET_HERE = new Set(['authorization', 'content-length', 'expect', 'host', 'sec-websocket-protocol']);

/** The target of the request. Throws `invalid_request` for what is no part of a path. */
function targetOf({ path }: Route, { params = {}, query = {} }: AnyInput): string {
  const segments = path.split('/').map((segment) => {
    if (segment === '*') return restOf(params['*'] ?? '');
    return segment.startsWith(':')
      ? encodeURIComponent((params[segment.slice(1)] ?? '').toWellFormed())
      : segment;
  });
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value].flat()) if (each !== undefined) search.append(name, String(each));
  }
  return `${segments.join('/')}${search.size === 0 ? '' : `?${search}`}`;
}

/** The rest of a path, encoded already. */
function restOf(rest: string): string {
  if (/^[!"$-.0->@-~/]*$/.test(rest)) return rest;
  throw invalidField('*', 'must be the encoded rest of a path');
}

/** The `data` of an answer that is JSON. Throws the error that it tells. */
async function dataOf(answer: IncomingMessage, status: number, read: { bytes: number }): Promise<unknown> {
  const { data, error } = await envelopeOf(answer, read);
  if (status < 400) return data;
  const { code, message, details } = (error ?? {}) as Record<string, unknown>;
  const known = ERROR_CODES.find((each) => each === code);
  if (known === undefined) throw ended();
  throw new ApiError(known, typeof message === 'string' ? message : undefined, details);
}

async function envelopeOf(
  answer: IncomingMessage,
  read: { bytes: number },
): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      read.bytes += chunk.length;
      if (bytes > ANSWER_MAX_BYTES || read.bytes > ANSWERS_MAX_BYTES) throw ended();
      chunks.push(chunk);
    }
    if (bytes === 0) return {};
    const parsed: unknown = JSON.parse(Buffer.concat(chunks).toString());
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    throw ended();
  } finally {
    read.bytes -= bytes;
  }
}

/** The call has no answer: it was cut off, as when the token is revoked meanwhile, or it is too long or no JSON. */
function ended(): ApiError {
  return new ApiError('unavailable', 'The call has ended without an answer.', { retry_after_s: 1 });
}
