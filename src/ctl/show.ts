import type { AttemptView, DeliveryDetail } from '../contract/deliveries.ts';
import type { Context, Terminal } from './context.ts';
import { STATE_STYLES } from './delivery-table.ts';
import { fullEventId } from './event-id.ts';
import { EXIT, type ExitCode } from './failure.ts';
import type { Output } from './terminal/output.ts';
import { printable } from './terminal/printable.ts';
import { duration, moment } from './terminal/quantity.ts';
import { table } from './terminal/table.ts';

/** Shows one record with its body, headers and attempts; the beginning of its id is enough. Contract section 4, `GET /webhook/deliveries/{event_id}`. */
export async function show(context: Context, event_id: string): Promise<ExitCode> {
  const path = { event_id: await fullEventId(context, event_id) };
  const delivery = await context.sandbox.GET('/api/v1/webhook/deliveries/{event_id}', { path });
  await printDelivery(context, delivery);
  return EXIT.ok;
}

/** Prints one record as text or, with `--json`, as JSON. */
export async function printDelivery({ out, json }: Terminal, delivery: DeliveryDetail): Promise<void> {
  if (json) return out.line(JSON.stringify(delivery));
  const fields: [string, string][] = [
    ['event_id', delivery.event_id],
    ['event_type', delivery.event_type],
    ['sequence', String(delivery.sequence ?? '-')],
    ['state', out.style(STATE_STYLES[delivery.state], delivery.state)],
    ['created', moment(delivery.created_at)],
    ['finished', moment(delivery.finished_at)],
    ['next attempt', moment(delivery.next_attempt_at)],
  ];
  if (delivery.last_error_detail) fields.push(['last error', printable(delivery.last_error_detail)]);
  for (const [name, value] of fields) await out.line(`${name.padEnd(14)}${value}`);
  await section(
    out,
    'headers',
    Object.entries(delivery.headers).map(([name, value]) => `  ${name}: ${printable(value)}`),
  );
  await section(out, 'body', [`  ${printable(delivery.body)}`]);
  await section(out, 'attempts', attemptLines(delivery.attempts, out));
}

async function section(out: Output, title: string, lines: string[]): Promise<void> {
  await out.line('');
  await out.line(title);
  for (const line of lines) await out.line(line);
}

function attemptLines(attempts: AttemptView[], out: Output): string[] {
  if (attempts.length === 0) return ['  none yet'];
  const room = out.columns === null ? null : out.columns - 2;
  return table(
    [
      { title: 'ATTEMPT', cell: ({ attempt }) => String(attempt) },
      { title: 'STARTED', cell: ({ started_at }) => moment(started_at) },
      { title: 'TOOK', cell: ({ duration_ms }) => duration(duration_ms) },
      {
        title: 'RESULT',
        cell: ({ status, error, error_detail }) => printable(error_detail ?? String(status ?? error ?? '-')),
      },
      { title: 'NEXT ATTEMPT', cell: ({ next_attempt_at }) => moment(next_attempt_at), spare: 1 },
      { title: 'RESPONSE', cell: ({ response_body }) => printable(response_body ?? '') },
    ],
    attempts,
    room,
  ).map((line) => `  ${line}`);
}
