import { describe, vi } from 'vitest';
import { describeConformance } from '../../support/outbox/conformance.ts';
import { clientOutbox, writerOutbox } from '../../support/outbox/sandbox-outbox.ts';

vi.setConfig({ testTimeout: 30_000 });

describe("the sandbox's outbox", () => {
  describeConformance(() => writerOutbox());
});

describe("the sandbox's outbox, over its thread", () => {
  describeConformance(() => clientOutbox(), { has_test_clock: false });
});
