import { vi } from 'vitest';
import { teamOutbox } from '../../support/manager/team-outbox.ts';
import { describeConformance } from '../../support/outbox/conformance.ts';
import { describeOnStores } from '../../support/stores.ts';

vi.setConfig({ testTimeout: 30_000 });

describeOnStores("the manager's outbox", (fresh) => {
  describeConformance(async () => teamOutbox(await fresh()));
});
