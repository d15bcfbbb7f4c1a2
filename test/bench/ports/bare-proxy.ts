import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '../support/program.ts';

export type BareProxyVerbs = {
  /** Passes everything on to a port of this machine; gives the proxy's own. */
  listen: (target: number) => Promise<number>;
};

/** What somebody would write first: `http` on both sides, `pipe`, and nothing checked. */
serve<BareProxyVerbs>({
  async listen(target) {
    const server = createServer({ noDelay: true }, (request, response) => {
      const { method, url, headers } = request;
      const passed = httpRequest({
        port: target,
        host: '127.0.0.1',
        method,
        path: url,
        headers,
        agent: false,
      });
      passed.on('response', (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      request.pipe(passed);
    });
    server.on('upgrade', (request, socket) => {
      const { url, headers } = request;
      const passed = httpRequest({ port: target, host: '127.0.0.1', path: url, headers, agent: false });
      passed.on('upgrade', ({ headers: answered }, upgraded) => {
        const lines = Object.entries(answered).map(([name, value]) => `${name}: ${value}\r\n`);
        socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`);
        upgraded.setNoDelay(true);
        // A client that has gone ends both.
        socket.on('error', () => upgraded.destroy());
        upgraded.on('error', () => socket.destroy());
        socket.pipe(upgraded).pipe(socket);
      });
      passed.end();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return (server.address() as AddressInfo).port;
  },
});
