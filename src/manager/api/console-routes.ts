import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HttpApp } from '../../base/http/app.ts';
import { type PageAnswer, type PageFiles, servedBy } from '../../base/http/page-files.ts';
import { ApiError } from '../../contract/errors.ts';

const OPEN = { demands: 'open' } as const;
const NOT_BUILT = 'The console is not part of this build.';

/**
 * Registers the page of the console and its files, which hold no data: what it shows it asks the API for, with the token
 * that its user gives. `files` are read with the first request. Source: contract section 7, "Console".
 */
export function registerConsoleRoutes(app: HttpApp, files: () => PageFiles): void {
  let read: PageFiles | null = null;
  const get = (
    url: string,
    handler: (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>,
  ) => app.route({ method: ['GET', 'HEAD'], url, config: OPEN, handler });
  // Where a proxy serves the manager is not known here.
  get('/console', async (_request, reply) => reply.redirect('console/', 308));
  get('/console/program.json', async (_request, reply) => send(reply, servedBy('manager')));
  get('/console/*', async (request, reply) => {
    read ??= files();
    const { '*': path } = request.params as { '*': string };
    const { 'accept-encoding': accept_encoding, 'if-none-match': if_none_match } = request.headers;
    const answer = read.answer(path, { accept_encoding, if_none_match });
    if (answer === null) throw new ApiError('not_found', read.is_empty ? NOT_BUILT : undefined);
    return send(reply, answer);
  });
}

function send(reply: FastifyReply, { status, headers, body }: PageAnswer): FastifyReply {
  return reply.code(status).headers(headers).send(body);
}
