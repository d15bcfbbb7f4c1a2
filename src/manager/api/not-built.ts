import type { FastifyRequest } from 'fastify';
import type { HttpApp } from '../../base/http/app.ts';
import { ApiError } from '../../contract/errors.ts';

/** What clients of this API's family offer and this manager does not. Source: contract section 7, "Clients of this API's family". */

const API = '/api/v1';
const ONE = `${API}/sandboxes/:sandbox_id`;

/** The paths of each feature. */
const FEATURES: Readonly<Record<string, readonly string[]>> = {
  sessions: [`${ONE}/sessions`, `${ONE}/sessions/*`],
  services: [`${ONE}/services`],
  previews: [`${ONE}/previews`, `${ONE}/previews/*`],
  observability: [`${ONE}/observability/*`],
  metrics: [`${ONE}/metrics`, `${ONE}/metrics/*`],
  'network policy': [`${ONE}/network`],
  snapshots: [`${ONE}/snapshots`, `${API}/sandbox-rootfs-snapshots/*`],
  rootfs: [`${ONE}/rootfs/*`],
  volumes: [`${API}/sandboxvolumes`, `${API}/sandboxvolumes/*`],
  templates: [`${API}/templates`, `${API}/templates/*`],
  'credential sources': [`${API}/credential-sources`, `${API}/credential-sources/*`],
  registry: [`${API}/registry/*`],
  teams: ['/teams', '/teams/*'],
};

declare module 'fastify' {
  interface FastifyContextConfig {
    /** As the route's row says. */
    unbuilt?: readonly string[] | undefined;
  }
}

/**
 * Registers a route for each path of theirs, which any token reaches and which is always 501. They are in no document. Of
 * bodies, it takes what rows call unbuilt: call it before their routes are there.
 */
export function registerNotBuilt(app: HttpApp): void {
  app.addHook('preValidation', async (request) => {
    const { unbuilt } = request.routeOptions.config;
    if (unbuilt !== undefined) withoutUnbuilt(request, unbuilt);
  });
  for (const [feature, urls] of Object.entries(FEATURES)) {
    for (const url of urls) {
      app.route({
        method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
        url,
        // Before a body is read.
        config: { demands: 'token' },
        preParsing: async () => {
          throw new ApiError('not_implemented', `Not implemented: ${feature}.`, { feature });
        },
        handler: async () => {},
      });
    }
  }
}

type Fields = Record<string, unknown>;

/** Takes such keys out of a body where they say nothing; throws `not_implemented` where they say something. */
export function withoutUnbuilt({ body }: Pick<FastifyRequest, 'body'>, keys: readonly string[]): void {
  for (const field of keys) {
    const names = field.split('.');
    const key = names.pop() as string;
    const holder = names.reduce<unknown>((at, name) => (isFields(at) ? at[name] : undefined), body);
    if (!isFields(holder) || !Object.hasOwn(holder, key)) continue;
    if (!saysNothing(holder[key])) {
      throw new ApiError('not_implemented', `Not implemented: ${field}.`, { field });
    }
    delete holder[key];
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Null, false, an empty list, or an object of nothing else. */
function saysNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isFields(value)) return Object.values(value).every(isEmpty);
  return isEmpty(value);
}

function isEmpty(value: unknown): boolean {
  return value === null || value === false || (Array.isArray(value) && value.length === 0);
}
