import type { Answer, Connector } from './connector.ts';
import { SandboxdError, unreachable } from './error.ts';
import { isStream, jsonIn } from './message.ts';
import { pause } from './pause.ts';
import { openSocket } from './streams/socket.ts';

/** Far more than a JSON answer has: the longest are lists of 10 000 entries. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;

/** The connector of browsers and of programs: `fetch` and `WebSocket`. */
export function fetchConnector(given: typeof fetch | undefined): Connector {
  // A browser's fetch wants its own `this`.
  const own_fetch = given ?? fetch;
  return {
    connect: openSocket,
    send: async ({ url, body, timeout_ms, signal, ...request }) => {
      const silence = new AbortController();
      const answered = new AbortController();
      if (timeout_ms) {
        const onSilence = () => silence.abort(new Error(`no answer within ${timeout_ms / 1_000} s`));
        pause(timeout_ms, answered.signal).then(onSilence, () => {});
      }
      const init = {
        ...request,
        // A redirection could lead the token astray; the programs send none.
        redirect: 'manual',
        signal: signal ? AbortSignal.any([signal, silence.signal]) : silence.signal,
        ...(body === undefined ? {} : { body }),
        ...(isStream(body) ? { duplex: 'half' } : {}),
      };
      try {
        return new FetchAnswer(await own_fetch(new Request(url, init as RequestInit)));
      } catch (error) {
        throw unreachable(error);
      } finally {
        answered.abort();
      }
    },
  };
}

class FetchAnswer implements Answer {
  readonly #response: Response;
  #text: Promise<string> | null = null;

  constructor(response: Response) {
    this.#response = response;
  }

  get status(): number {
    return this.#response.status;
  }

  get headers(): Headers {
    return this.#response.headers;
  }

  get is_json(): boolean {
    const { body, headers } = this.#response;
    return body !== null && (headers.get('content-type')?.startsWith('application/json') ?? false);
  }

  async json(): Promise<unknown> {
    this.#text ??= textOf(this.pieces(), this.status);
    return jsonIn(await this.#text);
  }

  async *pieces(): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
    // Not every browser iterates over a body.
    const reader = this.#response.body?.getReader();
    try {
      for (;;) {
        const chunk = await reader?.read();
        if (!chunk || chunk.done) return;
        yield chunk.value;
      }
    } finally {
      await reader?.cancel().catch(() => {});
    }
  }

  async response(): Promise<Response> {
    if (this.#text === null) return this.#response;
    const { status, statusText, headers } = this.#response;
    return new Response(await this.#text, { status, statusText, headers });
  }
}

/** The text of a body. Throws `bad_answer` where it is too long, and `unreachable` where it breaks off. */
async function textOf(pieces: AsyncIterable<Uint8Array>, status: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let left_bytes = ANSWER_MAX_BYTES;
  try {
    for await (const piece of pieces) {
      left_bytes -= piece.length;
      if (left_bytes < 0)
        throw new SandboxdError({ code: 'bad_answer', message: 'the answer does not end', status });
      text += decoder.decode(piece, { stream: true });
    }
  } catch (error) {
    throw error instanceof SandboxdError ? error : unreachable(error);
  }
  return text + decoder.decode();
}
