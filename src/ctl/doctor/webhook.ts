import { lookup } from 'node:dns/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Clock } from '../../base/clock.ts';
import type { DaemonClient } from '../../client/daemon-client.ts';
import { SandboxdError } from '../../client/error.ts';
import { CONNECT_TIMEOUT_MS } from '../../contract/defaults.ts';
import { newEventIds, signedEvent } from '../../webhook/signed-event.ts';
import { reason } from '../failure.ts';
import { error, type Finding, ok, warning } from './finding.ts';

const ANSWER_MS = 15_000;
/** A larger difference fails receivers that check timestamps. */
const CLOCK_MAX_MS = 5 * 60_000;

/** Checks whether the endpoint is reachable: name, connection, certificate. Stops at the first step that fails. */
export async function checkEndpoint(url: URL): Promise<Finding[]> {
  const findings: Finding[] = [];
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const is_tls = url.protocol === 'https:';
  const port = Number(url.port || (is_tls ? 443 : 80));
  const step = async (name: string, work: () => Promise<string>) => {
    if (findings.some(({ level }) => level === 'error')) return;
    const finding = await work().then(
      (message) => ok(name, message),
      (thrown) => error(name, `${host}:${port}: ${reason(thrown)}`),
    );
    findings.push(finding);
  };
  await step('dns', async () => {
    const addresses = await lookup(host, { all: true });
    return `${host} is ${addresses.map(({ address }) => address).join(', ')}`;
  });
  await step('tcp', () =>
    connected(connectTcp({ host, port }), 'connect', `${host}:${port} accepts connections`),
  );
  if (is_tls) {
    const servername = /^[\d.]+$|:/.test(host) ? undefined : host;
    await step('tls', async () => {
      const socket = connectTls({ host, port, ...(servername ? { servername } : {}) });
      let until = '';
      socket.once('secureConnect', () => {
        until = socket.getPeerCertificate().valid_to;
      });
      await connected(socket, 'secureConnect', '');
      return `${host}:${port} has a valid certificate, until ${until}`;
    });
  }
  return findings;
}

function connected(socket: ReturnType<typeof connectTcp>, event: string, message: string): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy(new Error('connection timed out')));
    socket.once('error', reject);
    socket.once(event, () => {
      resolve(message);
      socket.destroy();
    });
  });
}

/** Asks the running daemon to deliver a test event; null if none is running. */
export async function checkDelivery(daemon: DaemonClient): Promise<Finding[] | null> {
  const name = 'delivery';
  try {
    const { state, attempts, event_id } = await daemon.POST('/api/v1/webhook/test');
    const last = attempts.at(-1);
    const answer = last ? (last.error_detail ?? last.status ?? last.error) : 'no attempt yet';
    if (state === 'delivered') return [ok(name, `${event_id} was delivered by the daemon: ${answer}`)];
    return [error(name, `${event_id} is ${state}: ${answer}`)];
  } catch (thrown) {
    if (thrown instanceof SandboxdError && thrown.code === 'unreachable') return null;
    return [warning(name, (thrown as Error).message)];
  }
}

/**
 * Sends a test event without a daemon and compares the receiver's clock with this machine's. An empty `secret` leaves the
 * event unsigned.
 */
export async function sendTest(url: URL, secret: string, clock: Clock): Promise<Finding[]> {
  const happened_at_ms = clock.wallMs();
  const [event_id = ''] = newEventIds(1, happened_at_ms);
  const envelope = {
    event_id,
    event_type: 'agent.event',
    happened_at_ms,
    sandbox_id: '',
    team_id: '',
    sequence: 1,
    payload: '{"test":true}',
  };
  const { headers, body } = signedEvent(envelope, 'sandboxd', secret);
  try {
    const { statusCode = 0, headers: answered } = await post(
      url,
      { ...headers, 'X-Service-Attempt': '1' },
      body,
    );
    const signed = secret === '' ? 'unsigned' : 'signed';
    const message = `a ${signed} test event was answered ${statusCode}`;
    const finding =
      statusCode >= 200 && statusCode < 300 ? ok('delivery', message) : error('delivery', message);
    return [finding, ...compareClocks(answered.date, clock)];
  } catch (thrown) {
    return [error('delivery', `the test event got no answer: ${reason(thrown)}`)];
  }
}

function compareClocks(date: string | undefined, clock: Clock): Finding[] {
  const theirs_ms = Date.parse(date ?? '');
  if (Number.isNaN(theirs_ms)) return [];
  const ahead_ms = clock.wallMs() - theirs_ms;
  if (Math.abs(ahead_ms) < CLOCK_MAX_MS) return [];
  const minutes = Math.round(Math.abs(ahead_ms) / 60_000);
  return [warning('clock', `${minutes} min ${ahead_ms > 0 ? 'ahead of' : 'behind'} the receiver's clock`)];
}

function post(url: URL, headers: Record<string, string>, text: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(
      url,
      { method: 'POST', headers: { ...headers, 'content-length': Buffer.byteLength(text) }, agent: false },
      (response) => {
        // The head is enough; the body may never end.
        response.destroy();
        resolve(response);
      },
    );
    request.setTimeout(ANSWER_MS, () => request.destroy(new Error(`no answer within ${ANSWER_MS / 1000} s`)));
    request.on('error', reject);
    // Such as after an answer that changes to another protocol.
    request.on('close', () => reject(new Error('no answer')));
    request.end(text);
  });
}
