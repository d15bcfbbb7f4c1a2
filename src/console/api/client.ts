import { createDaemonClient } from '../../client/daemon-client.ts';
import { createManagerClient } from '../../client/manager-client.ts';
import { program, refusal, token } from '../base/session.ts';
import { noteAway, ROOT } from './connection.ts';

const url = ROOT.href.replace(/\/$/, '');

/** What the page asks a manager by. */
export const manager = createManagerClient({ url, token: () => token.value ?? '', fetch: reach });

/** What the page asks by where it is that of one daemon: the server of the page holds the token. */
export const daemon = createDaemonClient({ url, fetch: reach });

/** The header that proves who asks; none where the server of the page holds the token. */
export function authorization(): Record<string, string> {
  return token.value === null ? {} : { authorization: `Bearer ${token.value}` };
}

/**
 * Sends a request, and tells the page where nobody answers or the token is refused. What only reads is then asked again
 * once its user has signed in anew; what changes something is left to the user, who may be another by then.
 */
async function reach(given: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  for (let request = new Request(given, init); ; request = new Request(request, { headers: anew(request) })) {
    const used = token.value;
    const response = await sent(request);
    if (program.value === 'daemon' && response.status === 502) noteAway();
    if (program.value !== 'manager' || response.status !== 401) return response;
    if (token.value === used) refuse();
    if (request.method !== 'GET') return response;
    await response.body?.cancel();
    await signedIn(request.signal);
  }
}

/** Tells the page that the manager refuses its token. */
export function refuse(): void {
  refusal.set('The manager does not know this token, or it has been revoked.');
}

async function sent(request: Request): Promise<Response> {
  try {
    return await fetch(request, { cache: 'no-store', credentials: 'omit', redirect: 'error' });
  } catch (error) {
    if (!request.signal.aborted) noteAway();
    throw error;
  }
}

function anew({ headers }: Request): Headers {
  const changed = new Headers(headers);
  for (const [name, value] of Object.entries(authorization())) changed.set(name, value);
  return changed;
}

/** Resolves once a token is held that is not refused; rejects when `signal` is aborted. */
function signedIn(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = () => {
      if (signal.aborted) reject(signal.reason);
      else if (refusal.value === null) resolve();
      else return;
      forget();
      signal.removeEventListener('abort', look);
    };
    const forget = refusal.onChange(look);
    signal.addEventListener('abort', look);
    look();
  });
}
