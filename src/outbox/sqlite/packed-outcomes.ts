import type { AttemptOutcome } from '../store.ts';

/** The numbers of an outcome: what is null in nearly all of them is marked as missing instead. */
const FIELDS = 9;
const STATES = ['pending', 'delivered', 'failed', 'expired'] as const;
const ERROR = 1;
const ERROR_DETAIL = 2;
const RESPONSE_BODY = 4;
const STATUS = 8;

/** Outcomes as numbers, which are copied as one piece of memory, and those of their texts that are not null. */
export interface PackedOutcomes {
  numbers: Float64Array;
  texts: string[];
}

/** Packs outcomes. */
export function packOutcomes(outcomes: readonly AttemptOutcome[]): PackedOutcomes {
  const numbers = new Float64Array(outcomes.length * FIELDS);
  const texts: string[] = [];
  outcomes.forEach((outcome, i) => {
    const { status, error, error_detail, response_body, decision } = outcome;
    const at = i * FIELDS;
    numbers[at] = outcome.id;
    numbers[at + 1] = outcome.attempt;
    numbers[at + 2] = outcome.started_at_ms;
    numbers[at + 3] = outcome.duration_ms;
    numbers[at + 4] = status ?? 0;
    numbers[at + 5] = STATES.indexOf(decision.state);
    if (decision.state === 'pending') {
      numbers[at + 6] = decision.due_ms;
      numbers[at + 7] = decision.probe_ms;
    }
    numbers[at + 8] =
      (error === null ? 0 : ERROR) |
      (error_detail === null ? 0 : ERROR_DETAIL) |
      (response_body === null ? 0 : RESPONSE_BODY) |
      (status === null ? 0 : STATUS);
    for (const text of [error, error_detail, response_body]) if (text !== null) texts.push(text);
  });
  return { numbers, texts };
}

/** The outcomes of `packOutcomes`. */
export function unpackOutcomes({ numbers, texts }: PackedOutcomes): AttemptOutcome[] {
  let next_text = 0;
  return Array.from({ length: numbers.length / FIELDS }, (_, i) => {
    const number = (field: number) => numbers[i * FIELDS + field] as number;
    const present = number(8);
    const text = <Text extends string>(flag: number) =>
      (present & flag) === 0 ? null : (texts[next_text++] as Text);
    const state = STATES[number(5)] as (typeof STATES)[number];
    return {
      id: number(0),
      attempt: number(1),
      started_at_ms: number(2),
      duration_ms: number(3),
      status: (present & STATUS) === 0 ? null : number(4),
      error: text(ERROR),
      error_detail: text(ERROR_DETAIL),
      response_body: text(RESPONSE_BODY),
      decision: state === 'pending' ? { state, due_ms: number(6), probe_ms: number(7) } : { state },
    };
  });
}
