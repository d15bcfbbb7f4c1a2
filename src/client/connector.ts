import type { Answered } from './error.ts';
import type { OpenSocket } from './streams/socket.ts';

/** A request as a connector sends it: once, and to no other place that an answer names. */
export interface SentRequest {
  method: string;
  url: URL;
  /** By names in lower case. */
  headers: Record<string, string>;
  /** A text, bytes, or a stream of bytes; undefined for none. */
  body: unknown;
  /** The most time without anything from the server, in ms; 0 is forever, undefined the connector's own. */
  timeout_ms: number | undefined;
  signal: AbortSignal | undefined;
}

/** An answer, its body still to be read. */
export interface Answer extends Answered {
  /** Whether its body is JSON. */
  readonly is_json: boolean;
  /**
   * The value of a JSON body, which is read once and to its end; undefined of any other. Throws where it breaks off, or is
   * too long: it may come from a hostile sandbox.
   */
  json(): Promise<unknown>;
  /** The body as it comes. Throws where it breaks off; a reader that leaves early ends the request. */
  pieces(): AsyncIterable<Uint8Array<ArrayBuffer>>;
  /** The same for those who know `fetch`. */
  response(): Promise<Response>;
}

/** The way to a server. A `SandboxdError` is the failure of an attempt, which may be repeated; other errors end the call. */
export interface Connector {
  send(request: SentRequest): Promise<Answer>;
  /** Opens a WebSocket. */
  connect(url: URL, token: string | null, signal: AbortSignal | undefined): Promise<OpenSocket>;
}
