import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DeliveryView } from '../../src/contract/deliveries.ts';
import { run } from '../support/ctl/sandboxctl.ts';
import { delivery, deliveryDetail, StandInDaemon, succeed } from '../support/ctl/stand-in-daemon.ts';

const daemon = new StandInDaemon();
const of = (event_id: string, sequence: number): DeliveryView => ({ ...delivery(sequence), event_id });
const NEWER = of('evt_019a2b3c-4d5e-7f61-8123-000000000013', 13);
const OLDER = of('evt_019a2b3c-4d5e-7f60-8123-000000000012', 12);
const OLDEST = of('evt_018a2b3c-4d5e-7f60-8123-000000000011', 11);
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  env = { SANDBOXD_URL: await daemon.start() };
  daemon.on('GET /webhook/deliveries', ({ url }, response) => {
    const is_first = !url.includes('cursor=');
    succeed(response, 200, {
      deliveries: is_first ? [NEWER, OLDER] : [OLDEST],
      next_cursor: is_first ? '12' : null,
    });
  });
  for (const { event_id } of [OLDER, OLDEST]) {
    const detail = { ...deliveryDetail(12), event_id };
    daemon.on(`GET /webhook/deliveries/${event_id}`, (_, response) => succeed(response, 200, detail));
    daemon.on(`POST /webhook/deliveries/${event_id}/replay`, (_, response) => succeed(response, 200, detail));
  }
});

afterAll(() => daemon.stop());

describe('the beginning of an event id', () => {
  it.each([
    ['show', 'evt_019a2b3c-4d5e-7f60', OLDER],
    ['replay', '019a2b3c-4d5e-7f60', OLDER],
    ['show', '018a', OLDEST],
  ])('is enough for %s where it is unique: %s', async (command, beginning, { event_id }) => {
    const { code, stdout } = await run([command, beginning], env);
    expect([code, stdout.includes(event_id)]).toEqual([0, true]);
  });

  it('that several have lists them', async () => {
    const { code, stdout, stderr } = await run(['replay', 'evt_019a2b3c'], env);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^SEQUENCE .*\n13 .*evt_019a2b3c-4d5e-7f61 .*\n12 .*evt_019a2b3c-4d5e-7f60 /);
    expect(stderr).toMatch(/sandboxctl: 2 event ids begin with evt_019a2b3c: give more of it\n$/);
  });

  it('that none has is refused', async () => {
    const { code, stderr } = await run(['show', '0777'], env);
    expect([code, stderr]).toEqual([1, 'sandboxctl: no event id begins with evt_0777\n']);
  });
});
