import { Agent, type Dispatcher } from 'undici';
import { newEventIds, signedEvent } from '../../../src/webhook/signed-event.ts';
import { payloadOf } from './payload.ts';
import { serve } from './program.ts';

export interface Loop {
  url: string;
  requests: number;
  concurrency: number;
  secret: string;
}

export type BareLoopVerbs = { send: (loop: Loop) => Promise<void> };

/** Sends bodies like the daemon's, made and signed beforehand, as fast as the library does it. */
async function send({ url, requests, concurrency, secret }: Loop): Promise<void> {
  const { origin, pathname } = new URL(url);
  const agent = new Agent({ connections: concurrency, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  const options = makeRequests(requests, secret).map(
    (request): Dispatcher.DispatchOptions => ({ ...request, origin, path: pathname, method: 'POST' }),
  );
  await new Promise<void>((resolve, reject) => {
    let answered = 0;
    const next = () => {
      const request = options.pop();
      if (request) agent.dispatch(request, handler);
    };
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart() {},
      onResponseStart() {},
      onResponseData() {},
      onResponseEnd() {
        answered += 1;
        if (answered === requests) resolve();
        else next();
      },
      onResponseError(_controller, error) {
        reject(error);
      },
    };
    for (let i = 0; i < concurrency; i++) next();
  });
  await agent.close();
}

function makeRequests(count: number, secret: string): { headers: Record<string, string>; body: string }[] {
  const happened_at_ms = Date.now();
  return newEventIds(count, happened_at_ms).map((event_id, i) => {
    const envelope = {
      event_id,
      event_type: 'agent.event',
      happened_at_ms,
      sandbox_id: 'sbx_bench',
      team_id: 'team_bench',
      sequence: i + 1,
      payload: payloadOf(i),
    };
    const { headers, body } = signedEvent(envelope, 'sandboxd', secret);
    return { headers: { ...headers, 'X-Service-Attempt': '1' }, body };
  });
}

serve<BareLoopVerbs>({ send });
