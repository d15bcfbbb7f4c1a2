import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { replicaName } from '../../../src/manager/database/replica.ts';
import { Seal } from '../../../src/manager/database/seal.ts';
import { ManagerOutbox } from '../../../src/manager/outbox/manager-outbox.ts';
import { parseCidr } from '../../../src/webhook/address.ts';
import { AddressGuard } from '../../../src/webhook/address-guard.ts';

/** A replica that only delivers, as a process that a test can stop, continue and kill: node … <database url>. */
const [url = ''] = process.argv.slice(2);
const database = await openDatabase(url);
const delivery = new ManagerOutbox({
  database,
  clock: await DatabaseClock.open(database, systemClock),
  log: createLog('warn'),
  seal: new Seal(Buffer.alloc(32, 7)),
  guard: new AddressGuard([parseCidr('127.0.0.0/8') ?? []].flat()),
  replica: replicaName(),
});
await delivery.start();
// The delivery's own timers keep nothing alive.
setInterval(() => {}, 1_000);
process.stdout.write('started\n');
process.on('SIGTERM', () => {
  void delivery
    .stop()
    .then(() => database.close())
    .then(() => process.exit(0));
});
