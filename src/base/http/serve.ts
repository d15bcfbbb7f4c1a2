import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify';
import type { BodyOf, DataOf, PathParameters, QueryOf, Route, Routes } from '../../contract/routes/route.ts';
import { type HttpApp, success, withStreamedBodies } from './app.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The row of the route. */
    row?: Route;
  }
}

/** A call of a route: what its row describes of the request, checked, and the exchange itself for answers that are streams. */
export interface RouteCall<Row extends Route = Route> {
  params: PathParameters<Row['path']>;
  query: QueryOf<Row>;
  body: BodyOf<Row>;
  request: FastifyRequest;
  reply: FastifyReply;
}

/**
 * The handler of a route. It resolves with the `data` of its answer, to which the envelope and the row's status are added;
 * with the bytes of a whole body; or with nothing where it has answered by itself, or where there is nothing to say.
 */
export type Handler<Row extends Route = Route> = (
  call: RouteCall<Row>,
  // biome-ignore lint/suspicious/noConfusingVoidType: who answers by itself returns nothing.
) => Promise<DataOf<Row> | Buffer | void>;

/** A handler for each row. */
export type Handlers<Rows extends Routes> = { readonly [Id in keyof Rows]: Handler<Rows[Id]> };

/**
 * Registers routes with their handlers; `configOf` adds what the program's own hooks read of a row. Throws where a row has
 * no handler, or a handler no row: the compiler says so before.
 */
export async function serve<const Rows extends Routes>(
  app: HttpApp,
  rows: Rows,
  handlers: Handlers<Rows>,
  configOf: (row: Rows[keyof Rows]) => FastifyContextConfig,
): Promise<void> {
  const unknown = Object.keys(handlers).find((id) => !Object.hasOwn(rows, id));
  if (unknown !== undefined) throw new Error(`the handler ${unknown} has no row`);
  const streamed: [string, Rows[keyof Rows]][] = [];
  for (const [id, row] of Object.entries(rows) as [string, Rows[keyof Rows]][]) {
    if (!Object.hasOwn(handlers, id)) throw new Error(`the route ${id} has no handler`);
    if (row.body_media === undefined && !row.is_passed_on)
      register(app, row, handlers[id] as Handler, configOf(row));
    else streamed.push([id, row]);
  }
  if (streamed.length === 0) return;
  await withStreamedBodies(app, async (routes) => {
    for (const [id, row] of streamed) register(routes, row, handlers[id] as Handler, configOf(row));
  });
}

function register(app: HttpApp, row: Route, handler: Handler, config: FastifyContextConfig): void {
  const { method, path, query, body, is_raw = false, is_passed_on = false, status = 200, media } = row;
  app.route({
    method: method as string | string[],
    url: path,
    schema: {
      ...(query === undefined || is_raw ? {} : { querystring: query }),
      ...(body === undefined || is_raw ? {} : { body }),
    },
    config: { ...config, row, is_raw, is_passed_on },
    handler: async (request, reply) => {
      // The handler may choose another one.
      reply.code(status);
      const { params, query } = request as unknown as RouteCall;
      // Without a body it is null.
      const body = (request.body ?? undefined) as RouteCall['body'];
      const data = await handler({ params, query, body, request, reply });
      if (data === undefined) return undefined;
      return media === undefined && !Buffer.isBuffer(data) ? success(data) : data;
    },
  });
}
