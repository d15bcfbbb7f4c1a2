import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  type RawReplyDefaultExpression,
  type RawRequestDefaultExpression,
  type RawServerDefault,
} from 'fastify';
import type { TSchema } from 'typebox';
import { BODY_VALUES_MAX } from '../../contract/defaults.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import type { Log } from '../log.ts';
import { problemOf } from '../schema.ts';
import { bodies } from './bodies.ts';
import { answerError, noRoute } from './errors.ts';
import { headerLines, hostLines } from './host-lines.ts';
import { convertQuery } from './query.ts';
import { requestIds } from './request-ids.ts';
import { RoutePaths } from './route-paths.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route receives the body as raw bytes. */
    is_raw?: boolean;
    /** The body is for another server, which says what it may be. */
    is_passed_on?: boolean;
  }
  interface FastifyInstance {
    /** The methods allowed for a request's target; empty if no such path exists. */
    methodsOf: (target: string) => string[];
  }
}

/** A fastify application whose route schemas are typebox types. */
export type HttpApp = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** A request and its reply, for answers that are streams. */
export interface HttpExchange {
  request: FastifyRequest;
  reply: FastifyReply;
}

/**
 * Creates an application with the contract's envelope, error catalogue, body limits and `X-Request-Id`. Add routes to
 * it, then call `ready`. Any method that a known path does not allow is answered 405.
 * Source: contract section 4, "The local API".
 */
export function createHttpApp(log: Log): HttpApp {
  const nextId = requestIds();
  const paths = new RoutePaths();
  const app = fastify({
    // Requests that cannot be routed pass no hook.
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id);
      void answerError(log, error, request, reply);
    },
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 200 },
    genReqId: nextId,
    // Bodies are checked without generated code: start-up time matters more than the few bodies with a schema.
    schemaController: {
      compilersFactory: {
        buildValidator: () => validator as never,
        buildSerializer: () => () => (data: unknown) => JSON.stringify(data),
      },
    },
  }).withTypeProvider<TypeBoxTypeProvider>() as unknown as HttpApp;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', (request, _payload, done) => {
    bodies.read(request.raw, (error, body) => (error ? done(error) : parseBody(request, body, done)));
  });
  app.setErrorHandler((error, request, reply) => {
    // For an unknown path, errors in the body do not matter.
    const is_known = !request.is404 || error instanceof ApiError;
    return answerError(log, is_known ? (error as Error) : notThere(request, reply), request, reply);
  });
  app.decorate('methodsOf', (target: string) => paths.methodsOf(target));
  app.addHook('onRoute', ({ url, method }) => paths.add(url, method));
  app.setNotFoundHandler((request, reply) => {
    throw notThere(request, reply);
  });
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    checkTarget(request.raw);
    if (!request.is404 && !request.routeOptions.config.is_passed_on) checkBodyHeaders(request.raw);
    done();
  });
  return app;
}

function notThere({ server, raw }: FastifyRequest, reply: FastifyReply): ApiError {
  const methods = server.methodsOf(raw.url ?? '');
  if (methods.length === 0) return noRoute(raw.method ?? '', raw.url);
  reply.header('allow', methods.join(', '));
  return new ApiError('method_not_allowed');
}

/** Throws `invalid_request` if the target host is missing or ambiguous, or the token is. Source: RFC 9112, sections 3.2 and 3.2.2. */
function checkTarget({ rawHeaders, headers, url = '', httpVersion }: IncomingMessage): void {
  const hosts = hostLines(rawHeaders);
  if (hosts > 1) throw invalidField('Host', 'must be given once');
  if (hosts === 0 && httpVersion === '1.1') throw invalidField('Host', 'is required');
  if (headers.authorization !== undefined && headerLines(rawHeaders, 'authorization') > 1)
    throw invalidField('Authorization', 'must be given once');
  const [, authority] = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(url) ?? [];
  if (authority !== undefined && authority.toLowerCase() !== headers.host?.toLowerCase()) {
    throw invalidField('Host', 'must be the authority of the URL');
  }
}

/**
 * Throws `invalid_request` for a part of a body, and `unsupported_media_type` for a packed one: what is taken for the whole
 * would be something else. Source: RFC 9110, sections 8.4 and 14.5.
 */
function checkBodyHeaders({ method, headers }: IncomingMessage): void {
  if (method === 'PUT' && headers['content-range'] !== undefined)
    throw invalidField('Content-Range', 'is not accepted: PUT takes the whole content');
  const coding = headers['content-encoding'] ?? 'identity';
  if (coding.toLowerCase() !== 'identity')
    throw new ApiError('unsupported_media_type', 'Content-Encoding: bodies are taken unpacked.');
}

/** Adds routes whose bodies may have any type and length: only the routes themselves read them. */
export async function withStreamedBodies(app: HttpApp, add: (app: HttpApp) => Promise<void>): Promise<void> {
  await withParser(app, (streamed) => {
    streamed.addContentTypeParser('*', (_request, _payload, done) => done(null));
    return add(streamed);
  });
}

/** Adds routes that get bodies of any type whole, as bytes. */
export async function withBytes(app: HttpApp, add: (app: HttpApp) => Promise<void>): Promise<void> {
  await withParser(app, (whole) => {
    takeBytes(whole);
    return add(whole);
  });
}

/** Adds routes in a scope that takes bodies in no way but its own. */
async function withParser(app: HttpApp, add: (app: HttpApp) => Promise<void>): Promise<void> {
  await app.register((scope, _options, added) => {
    scope.removeAllContentTypeParsers();
    void add(scope as unknown as HttpApp).then(() => added(), added);
  });
}

/** Wraps the data of a successful answer in the contract's envelope. */
export function success(data: unknown): { success: true; data: unknown } {
  return { success: true, data };
}

/** Has a scope's routes get bodies of any other type as bytes. */
export function takeBytes(app: HttpApp): void {
  app.addContentTypeParser('*', (request, _payload, done) => {
    bodies.read(request.raw, (error, body) => done(error, body));
  });
}

function parseBody(
  request: FastifyRequest,
  body: Buffer,
  done: (error: Error | null, body?: unknown) => void,
) {
  if (request.is404) return done(null);
  if (request.routeOptions.config.is_raw) return done(null, body);
  if (body.length === 0) return done(null, undefined);
  if (!isUtf8(body)) return done(invalidField('body', 'must be UTF-8'));
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    return done(invalidField('body', 'must be JSON'));
  }
  const wide = fieldOfMany(value);
  if (wide !== null) return done(invalidField(wide, `holds more than ${BODY_VALUES_MAX} values`));
  // Like no body to what follows, but no schema takes it.
  done(value === null ? invalidField('body', 'must be an object') : null, value);
}

/** The field that takes a body beyond the values it may have; null if there is none. Checking each takes microseconds. */
function fieldOfMany(body: unknown): string | null {
  let left = BODY_VALUES_MAX;
  for (const [name, value] of Object.entries(body ?? {})) {
    // No recursion: it may be nested as deep as it is long.
    const waiting: unknown[] = [value];
    while (waiting.length > 0) {
      const each = waiting.pop();
      left -= 1;
      const inner = typeof each === 'object' && each !== null ? Object.values(each) : [];
      if (inner.length + waiting.length > left) return Array.isArray(body) ? 'body' : name;
      for (const deeper of inner) waiting.push(deeper);
    }
  }
  return null;
}

/** The function that checks one part of a route's requests. */
function validator({ schema, httpPart }: { schema: TSchema; httpPart?: string }) {
  if (httpPart === 'querystring') return (query: object) => convertQuery(schema, query);
  return (value: unknown) => {
    const is_absent = value === null || value === undefined;
    const wrong = problemOf(schema, is_absent ? {} : value);
    if (wrong === null) return { value };
    if (is_absent) return { error: invalidField('body', 'is required') };
    return { error: invalidField(wrong.field || 'body', wrong.problem) };
  };
}
