import { HostileReceiver } from './hostile-receiver.ts';
import { status } from './steps.ts';

/** A receiver as a program: prints its port, then each request as a line of JSON. It runs until it is killed. */
const receiver = await HostileReceiver.start(
  { undo: () => {} },
  { secret: process.env.RECEIVER_SECRET ?? '' },
);
receiver.behave((exchange) => {
  const { event_id, event_type, attempt, is_signed, at_ms } = exchange.request;
  process.stdout.write(`${JSON.stringify({ event_id, event_type, attempt, is_signed, at_ms })}\n`);
  status(200)(exchange);
});
process.stdout.write(`${JSON.stringify({ port: receiver.port })}\n`);
