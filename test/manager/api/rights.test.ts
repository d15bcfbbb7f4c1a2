import { createServer, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createHttpApp, success } from '../../../src/base/http/app.ts';
import { closeFrame } from '../../../src/base/http/frame-boundary.ts';
import { createLog } from '../../../src/base/log.ts';
import { VERSION } from '../../../src/base/version.ts';
import { PORT_PROTOCOL } from '../../../src/contract/control-socket.ts';
import { PASSED_ROUTES, type PassedRoute } from '../../../src/contract/routes/passed.ts';
import type { Scope } from '../../../src/contract/tokens.ts';
import { FEATURES } from '../../../src/contract/versions.ts';
import { guardRoutes } from '../../../src/manager/api/auth.ts';
import { Rights } from '../../../src/manager/api/rights.ts';
import { tokenCommand } from '../../../src/manager/token-command.ts';
import { eventually } from '../../support/eventually.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { ScriptedRuntime } from '../../support/manager/scripted-runtime.ts';
import { scratchFolder } from '../../support/scratch.ts';

const SCOPES: Scope[] = ['sandboxes:write', 'quota:read', 'usage:read', 'webhooks:read', 'admin'];
const FRAME = Buffer.from([0x82, 2, 1, 2]);
const OPENED = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n';

/** Sandboxes whose daemon, and servers on ports, never end an answer; `silent` ones begin none. */
class HangingRuntime extends ScriptedRuntime {
  readonly path = join(scratchFolder(), 'socket');
  readonly seen: string[] = [];

  static async start(is_silent: boolean): Promise<HangingRuntime> {
    const runtime = new HangingRuntime();
    const sockets = new Set<Socket>();
    const server = createServer((request, response) => {
      // What a route needs of a daemon is asked before.
      if (request.url === '/healthz')
        return response.end(JSON.stringify(success({ version: VERSION, features: FEATURES })));
      runtime.seen.push(`${request.method} ${request.url}`);
      request.resume();
      if (!is_silent) response.writeHead(200, { 'content-type': 'text/plain' }).write('begun');
    });
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
    });
    server.on('upgrade', ({ method, url, headers }, stream) => {
      const socket = stream as Socket;
      socket.on('error', () => {});
      if (headers.upgrade === PORT_PROTOCOL) {
        socket.write(`${OPENED}Upgrade: ${PORT_PROTOCOL}\r\n\r\n`);
        server.emit('connection', socket);
        return;
      }
      runtime.seen.push(`${method} ${url}`);
      // What it accepts is not looked at here.
      if (!is_silent)
        socket.write(`${OPENED}Upgrade: websocket\r\nSec-WebSocket-Accept: ${'x'.repeat(27)}=\r\n\r\n`);
      if (!is_silent) socket.write(FRAME);
    });
    await new Promise<void>((resolve) => server.listen(runtime.path, resolve));
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return runtime;
  }

  override async connect(): Promise<Socket> {
    return connect({ path: this.path, allowHalfOpen: true });
  }

  override hasOwnPorts(): boolean {
    return true;
  }
}

interface Call {
  name: string;
  status: number;
  headers: IncomingMessage['headers'];
  /** The body, or the bytes of a WebSocket. */
  bytes: string;
  /** `whole`: the answer was complete. */
  end: 'whole' | 'cut' | null;
}

/** Makes a request; a body that is not given never ends. */
function call(name: string, url: string, options: RequestOptions, body: string | null): Call {
  const made: Call = { name, status: 0, headers: {}, bytes: '', end: null };
  const request = httpRequest(url, { agent: false, ...options });
  onTestFinished(() => {
    request.destroy();
  });
  const take = (stream: NodeJS.ReadableStream) => {
    stream.on('data', (bytes: Buffer) => {
      made.bytes += bytes.toString('latin1');
    });
  };
  const cut = () => {
    made.end ??= 'cut';
  };
  request.on('error', cut);
  request.on('response', (response) => {
    made.status = response.statusCode ?? 0;
    made.headers = response.headers;
    take(response);
    response.on('error', cut);
    response.once('close', () => {
      made.end = response.complete ? 'whole' : 'cut';
    });
  });
  request.on('upgrade', (response, socket, head) => {
    made.status = response.statusCode ?? 0;
    made.bytes += head.toString('latin1');
    take(socket);
    socket.on('error', cut);
    socket.once('close', cut);
  });
  if (body !== null) request.end(body);
  else {
    request.setHeader('content-length', 1_000);
    request.flushHeaders();
    request.write('{');
  }
  return made;
}

interface Document {
  paths: Record<string, Record<string, { security?: object[] }>>;
}

/** Every route of the manager that is not open, as its document has them. */
async function routesOf(url: string): Promise<{ method: string; path: string }[]> {
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as Document;
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { security }]) => (security?.length ?? 0) > 0)
      .map(([method]) => ({ method: method.toUpperCase(), path })),
  );
}

const ROWS = Object.values<PassedRoute>(PASSED_ROUTES);
const PASSED = new Set(ROWS.map(({ method, path }) => `${method} ${braced(path)}`));
/** Their requests are passed on only once their body is complete. */
const READ_FIRST = new Set(
  ROWS.filter(({ body_media }) => body_media === undefined).map(
    ({ method, path }) => `${method} ${braced(path)}`,
  ),
);
const UPGRADES = new Set(ROWS.filter(({ status }) => status === 101).map(({ path }) => braced(path)));

function braced(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}

/** Calls every route with one token, and the feed with another one; resolves once all that can be is under way. */
async function scene(is_silent: boolean) {
  const runtime = await HangingRuntime.start(is_silent);
  const { manager, database, client } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, {
    runtime,
  });
  const leaving = await client('team_1', ...SCOPES);
  const { token_id } = (await tokenCommand.list(database))[0] as { token_id: string };
  const staying = await client('team_1', ...SCOPES);
  const [id, other] = [await staying.claim(), await staying.claim()];
  const open = (token: string, { method, path }: { method: string; path: string }) => {
    const is_passed = PASSED.has(`${method} ${path}`) || path.includes('/ports/');
    const is_upgrade = method === 'GET' && UPGRADES.has(path);
    const url = path
      .replace('{sandbox_id}', is_passed ? id : other)
      .replace('{port}', '8000')
      .replaceAll(/\{\w+\}/g, 'x')
      .replace('*', 'x');
    const has_none = ['GET', 'HEAD', 'DELETE', 'OPTIONS'].includes(method);
    const body = has_none ? '' : READ_FIRST.has(`${method} ${path}`) ? '{}' : null;
    const options = {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'text/event-stream',
        'content-type': 'application/json',
        ...(is_upgrade
          ? {
              connection: 'Upgrade',
              upgrade: 'websocket',
              'sec-websocket-key': 'x'.repeat(22),
              'sec-websocket-version': '13',
            }
          : {}),
      },
    };
    return call(`${method} ${path}`, manager.url + url, options, body);
  };
  const routes = await routesOf(manager.url);
  const calls = routes.map((route) => open(leaving.token, route));
  const kept = open(staying.token, { method: 'GET', path: '/api/v1/events' });
  const hanging = routes.filter(
    ({ method, path }) => PASSED.has(`${method} ${path}`) || path.includes('/ports/'),
  );
  const short = calls.filter(
    ({ name }) =>
      /^(GET|HEAD|DELETE) /.test(name) &&
      !hanging.some(({ method, path }) => `${method} ${path}` === name) &&
      name !== 'GET /api/v1/events',
  );
  await eventually(() => {
    expect(short.filter(({ end }) => end === null)).toEqual([]);
    expect(runtime.seen.length).toBeGreaterThanOrEqual(hanging.length);
    if (!is_silent) {
      const begun = calls.filter(({ name }) =>
        hanging.some(({ method, path }) => `${method} ${path}` === name),
      );
      expect(begun.filter(({ name, bytes }) => bytes === '' && !name.startsWith('HEAD '))).toEqual([]);
    }
    expect(kept.status).toBe(200);
  });
  const under_way = calls.filter(({ end }) => end === null);
  return { calls, under_way, hanging, kept, revoke: () => tokenCommand.revoke(database, token_id) };
}

describe('a token that is revoked', () => {
  it('ends every answer that has begun, of whatever route', async () => {
    const { under_way, hanging, kept, revoke } = await scene(false);
    const names = under_way.map(({ name }) => name);
    for (const { method, path } of hanging) {
      if (method !== 'HEAD') expect(names).toContain(`${method} ${path}`);
    }
    expect(names).toContain('GET /api/v1/events');
    await revoke();
    await eventually(() => expect(under_way.filter(({ end }) => end === null)).toEqual([]));
    for (const { name, status, headers, bytes, end } of under_way) {
      const [method, path = ''] = name.split(' ');
      if (method === 'GET' && UPGRADES.has(path)) {
        const close = closeFrame(1008, 'unauthorized').toString('latin1');
        expect([status, bytes], name).toEqual([101, FRAME.toString('latin1') + close]);
      } else if (name === 'GET /api/v1/events') {
        expect([status, bytes, end], name).toEqual([200, ': unauthorized\n\n', 'cut']);
      } else if (status === 200) expect([bytes, end], name).toEqual(['begun', 'cut']);
      else {
        // Its body was still awaited.
        expect([status, end], name).toEqual([401, 'whole']);
        if (method !== 'HEAD') expect(JSON.parse(bytes).error.code, name).toBe('unauthorized');
        expect(headers['www-authenticate'], name).toBe('Bearer');
      }
    }
    expect(kept.end).toBeNull();
  });

  it('ends every wait for an answer with 401', async () => {
    const { under_way, hanging, kept, revoke } = await scene(true);
    expect(under_way.length).toBeGreaterThan(hanging.length);
    await revoke();
    await eventually(() => expect(under_way.filter(({ end }) => end === null)).toEqual([]));
    for (const { name, status, bytes } of under_way) {
      if (name === 'GET /api/v1/events') continue;
      expect(status, name).toBe(401);
      if (!name.startsWith('HEAD ')) expect(JSON.parse(bytes).error.code, name).toBe('unauthorized');
    }
    expect(kept.end).toBeNull();
  });
});

describe('rights', () => {
  /** An API with one route that waits, whose tokens are those of `valid`. */
  async function waiting() {
    const app = createHttpApp(createLog('silent'));
    const valid = new Map<string, Scope[]>();
    let asked = 0;
    let is_away = false;
    const tokens = {
      find: async (token: string) => ({ actor: token, team_id: 't', scopes: valid.get(token) ?? [] }),
      scopes: async (ids: string[]) => {
        asked += 1;
        if (is_away) throw new Error('the database does not answer');
        return new Map([...valid].filter(([id]) => ids.includes(id)));
      },
    };
    const rights = new Rights(tokens as never);
    guardRoutes(app, tokens as never, async () => {}, rights);
    const may = Promise.withResolvers<void>();
    let begun = 0;
    app.get('/', { config: { demands: 'sandboxes:read' } }, async () => {
      begun += 1;
      await may.promise;
      return success('well');
    });
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    onTestFinished(() => app.close());
    const ask = async (token: string) => {
      const answer = fetch(url, { headers: { authorization: `Bearer ${token}` } }).then(
        ({ status }) => status,
      );
      const count = begun + 1;
      await eventually(() => expect(begun).toBe(count));
      return { answer };
    };
    return {
      ...{ rights, valid, ask, may },
      asked: () => asked,
      away: (is: boolean) => {
        is_away = is;
      },
    };
  }

  it('are lost with the scope, and nothing is lost while the database is away', async () => {
    const { rights, valid, ask, may, away } = await waiting();
    valid.set('a', ['sandboxes:write']);
    valid.set('b', ['sandboxes:read']);
    const [a, b] = [await ask('a'), await ask('b')];
    valid.set('a', ['quota:read']);
    away(true);
    await expect(rights.run()).rejects.toThrow('does not answer');
    away(false);
    await rights.run();
    expect(await a.answer).toBe(401);
    may.resolve();
    expect(await b.answer).toBe(200);
  });
});
