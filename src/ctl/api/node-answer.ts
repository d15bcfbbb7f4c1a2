import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Answer } from '../../client/connector.ts';

/** An answer as Node has it; `value` is that of its JSON, undefined where its body is a stream. */
export class NodeAnswer implements Answer {
  readonly #message: IncomingMessage;
  readonly #value: unknown;

  constructor(message: IncomingMessage, value: unknown) {
    this.#message = message;
    this.#value = value;
  }

  get status(): number {
    return this.#message.statusCode ?? 0;
  }

  get headers(): Answer['headers'] {
    const { headers } = this.#message;
    return { get: (name) => headers[name]?.toString() ?? null };
  }

  get is_json(): boolean {
    return this.#value !== undefined;
  }

  async json(): Promise<unknown> {
    return this.#value;
  }

  pieces(): AsyncIterable<Uint8Array<ArrayBuffer>> {
    return this.#message;
  }

  async response(): Promise<Response> {
    const headers = new Headers(
      Object.entries(this.#message.headersDistinct).flatMap(([name, values = []]) =>
        values.map((value): [string, string] => [name, value]),
      ),
    );
    const body = Readable.toWeb(this.#message) as ReadableStream;
    return new Response(body, { status: this.status, headers });
  }
}
