import { once } from 'node:events';
import { serve } from '../../bench/support/program.ts';
import { Random } from '../random.ts';

/** A team's sandboxes, and its token. */
export interface HostileCalls {
  url: string;
  token: string;
  sandbox_ids: string[];
  seed: number;
}

export type HostileCallVerbs = ReturnType<typeof verbs>;

const AT_ONCE = 24;
const FOLLOWERS = 48;
const UPLOAD = Buffer.alloc(256 * 1024, 'uploaded ');
const CALL_TIMEOUT_MS = 60_000;
const REST_MS = 20;
/** One that is paused takes nothing: few are at a time. */
const PAUSED = 0.2;

/** A path below a sandbox's, with what is sent there. */
type Call = [method: string, path: string, body?: object | Buffer];

const CALLS: ((random: Random) => Call)[] = [
  () => ['POST', '/processes', { command: ['true'] }],
  () => ['POST', '/processes?wait_ms=1000', { shell: 'sleep 0.2' }],
  () => ['POST', '/processes', { shell: 'exec sleep 60', pty: { cols: 80, rows: 24 } }],
  () => ['POST', '/contexts', { type: 'cmd', cmd: { command: ['cat'] } }],
  (random) => ['PUT', `/files?path=/root/uploaded-${random.below(1_000)}`, UPLOAD],
  () => ['GET', '/files?path=/usr/bin/python3'],
  () => ['GET', '/files/list?path=/usr/lib&recursive=true'],
  () => ['GET', '/files/archive?path=/usr/share/doc'],
  () => ['GET', '/processes'],
  () => ['GET', '/webhook/deliveries?limit=1000'],
  () => ['PUT', '', { config: { env_vars: { A: 'x'.repeat(32_000) } } }],
  (random) => ['POST', random.chance(PAUSED) ? '/pause' : '/resume'],
  () => ['POST', '/fork', {}],
];

/** Calls of hostile clients: each does what its token may, many at once, and follows streams without reading them. */
function verbs() {
  const over = new AbortController();
  const counts: Record<string, number> = {};
  let running: Promise<unknown> = Promise.resolve();
  return {
    begin({ url, token, sandbox_ids, seed }: HostileCalls): void {
      const random = new Random(seed);
      const call = async (): Promise<void> => {
        const [method, path, body] = random.pick(CALLS)(random);
        const is_bytes = Buffer.isBuffer(body);
        const content_type = is_bytes ? 'application/octet-stream' : 'application/json';
        const response = await fetch(`${url}/api/v1/sandboxes/${random.pick(sandbox_ids)}${path}`, {
          method,
          headers: {
            authorization: `Bearer ${token}`,
            ...(body === undefined ? {} : { 'content-type': content_type }),
          },
          ...(body === undefined ? {} : { body: is_bytes ? body : JSON.stringify(body) }),
          signal: AbortSignal.any([over.signal, AbortSignal.timeout(CALL_TIMEOUT_MS)]),
        });
        counts[response.status] = (counts[response.status] ?? 0) + 1;
        await response.arrayBuffer();
      };
      const worker = async () => {
        while (!over.signal.aborted) {
          await call().catch(() => new Promise((resolve) => setTimeout(resolve, REST_MS)));
        }
      };
      const follower = async (number: number) => {
        const of_sandbox = `/sandboxes/${sandbox_ids[number % sandbox_ids.length]}/events/stream`;
        const path = number % 2 === 0 ? of_sandbox : '/events?cursor=0';
        const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' };
        while (!over.signal.aborted) {
          const response = await fetch(`${url}/api/v1${path}`, { headers, signal: over.signal }).catch(
            () => null,
          );
          // Nothing of it is read.
          if (response?.ok && !over.signal.aborted) await once(over.signal, 'abort');
          await new Promise((resolve) => setTimeout(resolve, REST_MS));
        }
      };
      running = Promise.all([
        ...Array.from({ length: AT_ONCE }, worker),
        ...Array.from({ length: FOLLOWERS }, (_, number) => follower(number)),
      ]);
    },

    /** How many answers there were of each status. */
    counts(): Record<string, number> {
      return counts;
    },

    async end(): Promise<Record<string, number>> {
      over.abort();
      await running;
      return counts;
    },
  };
}

if (process.send) serve(verbs());
