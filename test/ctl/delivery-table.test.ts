import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { deliveryTable } from '../../src/ctl/delivery-table.ts';
import { width } from '../../src/ctl/terminal/printable.ts';
import { screen } from '../support/ctl/screen.ts';
import { delivery } from '../support/ctl/stand-in-daemon.ts';

const NOW_MS = Date.UTC(2026, 0, 1, 0, 2);
const last_error_detail = 'certificate has expired (CERT_HAS_EXPIRED hooks.invalid:443)';
const RECORDS = [
  delivery(12, {
    ...{ state: 'pending', next_attempt_at: '2026-01-01T00:02:09.000Z' },
    ...{ last_status: null, last_error: 'tls', last_error_detail },
  }),
  {
    ...delivery(11, { event_type: 'process.started' }),
    event_id: 'evt_019a2b3c-4d5e-7f61-8123-000000000011',
  },
];

async function lines(columns: number): Promise<string[]> {
  const { out, text } = screen(columns);
  for (const line of deliveryTable(RECORDS, out, NOW_MS)) await out.line(line);
  return stripVTControlCharacters(text()).trimEnd().split('\n');
}

describe('the table of deliveries', () => {
  it('shows ages, attempts, the beginning of ids that tells them apart, and why an attempt failed', async () => {
    expect(await lines(160)).toEqual([
      'SEQUENCE  AGE     EVENT TYPE       STATE      ATTEMPTS  NEXT    EVENT ID                LAST RESULT',
      `12        2 min   agent.event      pending    2         9 s     evt_019a2b3c-4d5e-7f60  ${last_error_detail}`,
      '11        2 min   process.started  delivered  2         -       evt_019a2b3c-4d5e-7f61  204',
    ]);
  });

  it('fits 100 columns with all of that, and 80 with ids', async () => {
    expect(await lines(100)).toEqual([
      'AGE     EVENT TYPE       STATE      ATTEMPTS  EVENT ID                LAST RESULT',
      '2 min   agent.event      pending    2         evt_019a2b3c-4d5e-7f60  certificate has expired (CERT…',
      '2 min   process.started  delivered  2         evt_019a2b3c-4d5e-7f61  204',
    ]);
    for (const line of await lines(80)) expect(width(line)).toBeLessThanOrEqual(80);
    expect((await lines(80))[1]).toContain('evt_019a2b3c-4d5e-7f60');
  });
});
