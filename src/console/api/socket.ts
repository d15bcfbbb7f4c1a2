import { socketProtocols } from '../../contract/socket-token.ts';
import { token } from '../base/session.ts';
import { apiUrl, type Query } from './http.ts';

/** Opens a WebSocket below `/api/v1`. The token goes as a subprotocol: a URL would end up in logs. */
export function openSocket(path: string, query: Query): WebSocket {
  const url = apiUrl(path, query);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return token.value === null ? new WebSocket(url) : new WebSocket(url, socketProtocols(token.value));
}
