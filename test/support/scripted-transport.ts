import type { Clock } from '../../src/base/clock.ts';
import type { AttemptError } from '../../src/contract/words.ts';
import type { AttemptResult } from '../../src/webhook/retry.ts';
import type { SignedRequest, Transport } from '../../src/webhook/transport.ts';

/** One request that a dispatcher sent. */
export interface Sent {
  event_id: string;
  sequence: number;
  attempt: number;
  at_ms: number;
  request: SignedRequest;
}

/** What a request comes to: a status or an error, after some time; `hang` ends only by its time-out. */
export type Answer =
  | number
  | AttemptError
  | 'hang'
  | { status: number; retry_after?: string; after_ms?: number };

/** A receiver at the port: it answers as the test says, in no time but where it is told to take some. */
export class ScriptedTransport implements Transport {
  readonly #clock: Clock;
  answer: (sent: Sent) => Answer;
  readonly sent: Sent[] = [];
  under_way = 0;
  most_under_way = 0;
  /** Event ids of records of which two attempts were under way at the same time. */
  readonly overlapping: string[] = [];
  readonly #now_sending = new Set<string>();
  #cut_off: ((result: AttemptResult) => void)[] = [];

  constructor(clock: Clock, answer: (sent: Sent) => Answer) {
    this.#clock = clock;
    this.answer = answer;
  }

  async send(request: SignedRequest, timeout_ms: number): Promise<AttemptResult> {
    const sent: Sent = {
      event_id: request.headers['ce-id'] ?? '',
      sequence: Number(request.headers['ce-sequence']),
      attempt: Number(request.headers['X-Service-Attempt']),
      at_ms: this.#clock.monotonicMs(),
      request,
    };
    this.sent.push(sent);
    if (this.#now_sending.has(sent.event_id)) this.overlapping.push(sent.event_id);
    this.#now_sending.add(sent.event_id);
    this.most_under_way = Math.max(this.most_under_way, ++this.under_way);
    const result = await this.#result(this.answer(sent), timeout_ms);
    this.under_way -= 1;
    this.#now_sending.delete(sent.event_id);
    return result;
  }

  #result(answer: Answer, timeout_ms: number): Promise<AttemptResult> {
    if (answer === 'hang') return this.#later(failed('timeout'), timeout_ms);
    if (typeof answer === 'string') return this.#later(failed(answer), 0);
    if (typeof answer === 'number') return this.#later(answered(answer, null), 0);
    return this.#later(answered(answer.status, answer.retry_after ?? null), answer.after_ms ?? 0);
  }

  #later(result: AttemptResult, after_ms: number): Promise<AttemptResult> {
    if (after_ms === 0) return Promise.resolve(result);
    return new Promise((resolve) => {
      this.#cut_off.push(resolve);
      this.#clock.after(after_ms, () => resolve(result));
    });
  }

  async close(): Promise<void> {
    for (const resolve of this.#cut_off.splice(0)) resolve(failed('reset'));
  }

  /** The sequences that were sent, in order. */
  get sequences(): number[] {
    return this.sent.map(({ sequence }) => sequence);
  }

  /** When a record was sent, attempt by attempt. */
  timesOf(sequence: number): number[] {
    return this.sent.filter((each) => each.sequence === sequence).map(({ at_ms }) => at_ms);
  }
}

function failed(error: AttemptError): AttemptResult {
  return { status: null, error, retry_after: null, error_detail: null, response_body: null };
}

function answered(status: number, retry_after: string | null): AttemptResult {
  return { status, error: null, retry_after, error_detail: null, response_body: null };
}
