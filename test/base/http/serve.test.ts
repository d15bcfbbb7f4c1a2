import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { createHttpApp } from '../../../src/base/http/app.ts';
import { type Handlers, serve } from '../../../src/base/http/serve.ts';
import { createLog } from '../../../src/base/log.ts';
import { closedObject, Flag } from '../../../src/contract/field.ts';
import { joinedRoutes, type Route, type Routes } from '../../../src/contract/routes/route.ts';

const tag = 'files' as const;
const LAMPS = {
  getLamp: {
    method: 'GET',
    path: '/lamps/:lamp_id',
    tag,
    summary: 'Get a lamp',
    query: closedObject({ dim: Flag }),
    data: Type.Object({ lamp: Type.String(), dim: Type.Boolean() }),
  },
  makeLamp: {
    method: 'POST',
    path: '/lamps',
    tag,
    summary: 'Make a lamp',
    status: 201,
    body: closedObject({ name: Type.String() }),
    data: Type.Object({ made: Type.String() }),
  },
  fillLamp: {
    method: 'PUT',
    path: '/lamps/:lamp_id/oil',
    tag,
    summary: 'Fill a lamp',
    status: 204,
    body_media: 'application/octet-stream',
  },
  watchLamp: {
    method: 'GET',
    path: '/lamps/:lamp_id/text',
    tag,
    summary: 'Watch a lamp',
    media: 'text/plain',
  },
} as const satisfies Routes;

const HANDLERS: Handlers<typeof LAMPS> = {
  async getLamp({ params: { lamp_id }, query: { dim } }) {
    return { lamp: lamp_id, dim };
  },
  async makeLamp({ body: { name } }) {
    return { made: name };
  },
  async fillLamp({ request }) {
    for await (const _piece of request.raw) {
      // It takes oil of any kind.
    }
  },
  async watchLamp({ reply }) {
    reply.code(203);
    return 'it shines';
  },
};

async function served<Rows extends Routes>(rows: Rows, handlers: Handlers<Rows>) {
  const app = createHttpApp(createLog('silent'));
  await serve(app, rows, handlers, () => ({}));
  return app;
}

describe('a route that is served by its row', () => {
  it('gives its handler what the row describes, and answers in the envelope with the status of the row', async () => {
    const app = await served(LAMPS, HANDLERS);
    const got = await app.inject('/lamps/l1?dim');
    expect([got.statusCode, got.json()]).toEqual([200, { success: true, data: { lamp: 'l1', dim: true } }]);
    const made = await app.inject({ method: 'POST', url: '/lamps', payload: { name: 'a' } });
    expect([made.statusCode, made.json()]).toEqual([201, { success: true, data: { made: 'a' } }]);
  });

  it('refuses what the row does not describe', async () => {
    const app = await served(LAMPS, HANDLERS);
    expect((await app.inject('/lamps/l1?colour=red')).json().error.message).toBe(
      'colour: unknown query parameter',
    );
    const made = await app.inject({ method: 'POST', url: '/lamps', payload: { name: 'a', oil: 1 } });
    expect(made.json().error.message).toBe('oil: unknown field');
  });

  it('takes a stream of any type, and answers with nothing', async () => {
    const app = await served(LAMPS, HANDLERS);
    const filled = await app.inject({
      method: 'PUT',
      url: '/lamps/l1/oil',
      headers: { 'content-type': 'application/x-oil' },
      payload: 'oil',
    });
    expect([filled.statusCode, filled.body]).toEqual([204, '']);
  });

  it('answers a text as it is, with the status that the handler chose', async () => {
    const app = await served(LAMPS, HANDLERS);
    const { statusCode, body } = await app.inject('/lamps/l1/text');
    expect([statusCode, body]).toEqual([203, 'it shines']);
  });

  it('shows its row to the hooks of the program', async () => {
    const app = createHttpApp(createLog('silent'));
    const seen: (string | undefined)[] = [];
    app.addHook('onRoute', ({ config }) => void seen.push(config?.row?.summary));
    await serve(app, LAMPS, HANDLERS, () => ({}));
    expect(seen.sort()).toEqual(['Fill a lamp', 'Get a lamp', 'Make a lamp', 'Watch a lamp']);
  });
});

describe('a table and its handlers', () => {
  it('stop the build and the start where a row has no handler', async () => {
    const { watchLamp, ...others } = HANDLERS;
    // @ts-expect-error: `watchLamp` is missing.
    const handlers: Handlers<typeof LAMPS> = others;
    await expect(served(LAMPS, handlers)).rejects.toThrow('the route watchLamp has no handler');
  });

  it('stop the build and the start where a handler has no row', async () => {
    const more = {
      // @ts-expect-error: there is no such row.
      async breakLamp() {
        return { broken: true };
      },
    } satisfies Partial<Handlers<typeof LAMPS>>;
    await expect(served(LAMPS, { ...HANDLERS, ...more })).rejects.toThrow('the handler breakLamp has no row');
  });

  it('stop the build where an answer is not of the shape of the row', () => {
    const more: Partial<Handlers<typeof LAMPS>> = {
      // @ts-expect-error: `made` is a text.
      async makeLamp() {
        return { made: 1 };
      },
    };
    expect(more.makeLamp).toBeTypeOf('function');
  });

  it('stop the build where an operation id stands twice, or a path has a method twice', async () => {
    const twice: Record<string, Route> = {
      // biome-ignore lint/suspicious/noDuplicateObjectKeys: it is what the compiler refuses.
      one: LAMPS.getLamp,
      // @ts-expect-error: an object has each key once.
      one: LAMPS.makeLamp,
    };
    expect(Object.keys(twice)).toEqual(['one']);
    // @ts-expect-error: both tables have `makeLamp`.
    joinedRoutes(LAMPS, { makeLamp: LAMPS.makeLamp });
    expect(joinedRoutes(LAMPS, { breakLamp: LAMPS.makeLamp }).breakLamp).toBe(LAMPS.makeLamp);
    const same = { ...LAMPS, alsoGetLamp: LAMPS.getLamp };
    const handlers = { ...HANDLERS, alsoGetLamp: HANDLERS.getLamp };
    await expect(served(same, handlers)).rejects.toThrow(
      "Method 'GET' already declared for route '/lamps/:lamp_id'",
    );
  });
});
