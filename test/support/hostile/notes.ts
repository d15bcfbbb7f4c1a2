/** How many examples of a defect are kept. */
const EXAMPLES = 20;

/** Answers and defects that a crowd of clients has seen. */
export interface NotedAnswers {
  /** How often each behaviour ran. */
  runs: Record<string, number>;
  /** How often each behaviour got each status; `cut` for a connection that was closed without an answer. */
  answers: Record<string, Record<string, number>>;
  /** What must not happen: the first examples. */
  defects: string[];
  defect_count: number;
}

/** Collects what a crowd of clients is answered, and judges it. */
export class Notes implements NotedAnswers {
  readonly runs: Record<string, number> = {};
  readonly answers: Record<string, Record<string, number>> = {};
  readonly defects: string[] = [];
  defect_count = 0;

  run(behaviour: string): void {
    this.runs[behaviour] = (this.runs[behaviour] ?? 0) + 1;
  }

  /** Counts an answer; one of 5xx but 503 is a defect, and so is a refused publish without Retry-After. */
  answer(behaviour: string, what: string, { status, headers, text }: Judged): void {
    this.count(behaviour, String(status));
    if (status >= 500 && status !== 503)
      this.defect(`${behaviour}: ${what}: ${status} ${text.slice(0, 300)}`);
    const is_refused_publish = status === 503 && what.includes('/webhook/publish');
    if (is_refused_publish && headers['retry-after'] === undefined)
      this.defect(`${behaviour}: ${what}: 503 without Retry-After ${text.slice(0, 300)}`);
  }

  count(behaviour: string, outcome: string): void {
    const outcomes = this.answers[behaviour] ?? {};
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    this.answers[behaviour] = outcomes;
  }

  defect(text: string): void {
    this.defect_count += 1;
    if (this.defects.length < EXAMPLES) this.defects.push(text);
  }
}

interface Judged {
  status: number;
  headers: Record<string, unknown>;
  text: string;
}
