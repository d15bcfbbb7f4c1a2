import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../support/ctl/sandboxctl.ts';
import { deliveryDetail, StandInDaemon, succeed } from '../support/ctl/stand-in-daemon.ts';

const daemon = new StandInDaemon();
const detail = deliveryDetail(12);
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  env = { SANDBOXD_URL: await daemon.start() };
  daemon.on(`GET /webhook/deliveries/${detail.event_id}`, (_, response) => succeed(response, 200, detail));
});

afterAll(() => daemon.stop());

describe('sandboxctl show', () => {
  it('shows the record, its headers, its body as sent and each attempt', async () => {
    const { code, stdout } = await run(['show', detail.event_id], env);
    expect(code).toBe(0);
    expect(stdout).toBe(`event_id      ${detail.event_id}
event_type    agent.event
sequence      12
state         delivered
created       2026-01-01 00:00:00Z
finished      2026-01-01 00:00:01Z
next attempt  -

headers
  Content-Type: application/json
  ce-id: ${detail.event_id}

body
  ${detail.body}

attempts
  ATTEMPT  STARTED               TOOK   RESULT                                         NEXT ATTEMPT          RESPONSE
  1        2026-01-01 00:00:00Z  12 ms  connection refused (ECONNREFUSED 127.0.0.1:9)  2026-01-01 00:00:00Z
  2        2026-01-01 00:00:00Z  1.2 s  204                                            -                     thank you \\u001b[31mvery much
`);
  });

  it('says on a line of its own why the last attempt failed', async () => {
    const last_error_detail = 'certificate has expired (CERT_HAS_EXPIRED hooks.invalid:443)';
    const failing = deliveryDetail(13, { state: 'pending', last_error: 'tls', last_error_detail });
    daemon.on(`GET /webhook/deliveries/${failing.event_id}`, (_, response) =>
      succeed(response, 200, failing),
    );
    const { stdout } = await run(['show', failing.event_id], env);
    expect(stdout).toContain(`\nlast error    ${last_error_detail}\n`);
  });

  it('prints JSON for a script', async () => {
    const { stdout } = await run(['show', '--json', detail.event_id], env);
    expect(JSON.parse(stdout)).toEqual(detail);
  });

  it('fails with 1 where there is no such event, whatever was typed', async () => {
    const ended = await run(['show', '../../sandbox?x'], env);
    expect(ended).toEqual({
      code: 1,
      stdout: '',
      stderr: 'sandboxctl: ../../sandbox?x: Not found. (not_found)\n',
    });
    expect(daemon.received.at(-1)?.url).toBe('/api/v1/webhook/deliveries/..%2F..%2Fsandbox%3Fx');
  });
});
