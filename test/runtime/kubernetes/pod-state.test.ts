import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ContainerStatus, Pod } from '../../../src/runtime/kubernetes/api/objects.ts';
import { WEBHOOK_ANNOTATION } from '../../../src/runtime/kubernetes/names.ts';
import {
  hasEnded,
  hasKeeper,
  isSilent,
  isUp,
  podStart,
  slimPod,
} from '../../../src/runtime/kubernetes/pod-state.ts';

const RUNNING = { running: {} };
const ENDED = { terminated: { exitCode: 137 } };

function pod(status: Pod['status'], deletionTimestamp?: string): Pod {
  const metadata = { name: 'sb-1', uid: '1', resourceVersion: '1' };
  return {
    metadata: { ...metadata, ...(deletionTimestamp ? { deletionTimestamp } : {}) },
    spec: {},
    status: status ?? {},
  };
}

function containers(sandbox: object, keeper: object = RUNNING) {
  return [
    { name: 'sandbox', state: sandbox },
    { name: 'keeper', state: keeper },
  ];
}

const ready = (status: 'True' | 'False') => ({ conditions: [{ type: 'Ready', status }] });

it.each([
  [
    'runs',
    pod({ phase: 'Running', ...ready('True'), containerStatuses: containers(RUNNING) }),
    true,
    false,
    true,
  ],
  [
    'has a dead daemon',
    pod({ phase: 'Running', ...ready('False'), containerStatuses: containers(ENDED) }),
    false,
    true,
    true,
  ],
  [
    'has a dead keeper',
    pod({ phase: 'Running', containerStatuses: containers(RUNNING, ENDED) }),
    false,
    false,
    false,
  ],
  [
    'is on a lost node',
    pod({ phase: 'Running', ...ready('False'), containerStatuses: containers(RUNNING) }),
    false,
    false,
    true,
  ],
  [
    'is being removed',
    pod({ phase: 'Running', containerStatuses: containers(RUNNING) }, 'now'),
    false,
    false,
    false,
  ],
  ['was evicted', pod({ phase: 'Failed', reason: 'Evicted' }), false, true, false],
])('of a Pod that %s, the cluster tells what is left', (_case, found, is_up, has_ended, has_keeper) => {
  expect([isUp(found), hasEnded(found), hasKeeper(found)]).toEqual([is_up, has_ended, has_keeper]);
});

const unschedulable = (message: string) =>
  pod({ conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }] });

it.each([
  [pod({}), 'starting'],
  [unschedulable('0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.'), 'starting'],
  [unschedulable('0/1 nodes are available: 1 Insufficient memory.'), 'capacity_exhausted'],
  [pod({ containerStatuses: containers({ waiting: { reason: 'ContainerCreating' } }) }), 'starting'],
  [pod({ containerStatuses: containers({ waiting: { reason: 'ErrImagePull' } }) }), 'internal_error'],
  [pod({ containerStatuses: containers(ENDED) }), 'internal_error'],
  [pod({ containerStatuses: containers(RUNNING) }), 'starting'],
  [pod({ podIP: '10.0.0.7', containerStatuses: containers(RUNNING) }), 'up'],
])('a Pod that starts is told from one that will not: %#', (found, expected) => {
  const start = podStart(found);
  expect(start.state === 'failed' ? start.error.code : start.state).toBe(expected);
});

it('a Pod is silent only if it ran and its node is not heard of', () => {
  const on = (status: 'True' | 'False', sandbox: object) =>
    isSilent(pod({ phase: 'Running', ...ready(status), containerStatuses: containers(sandbox) }));
  expect([on('False', RUNNING), on('True', RUNNING), on('False', ENDED)]).toEqual([true, false, false]);
});

const text = fc.constantFrom('', 'Unschedulable', 'ErrImagePull', '0/3 nodes', 'waiting for a volume');
const state = fc.oneof(
  fc.constant({}),
  fc.record({ running: fc.record({ startedAt: text }) }),
  fc.record({ waiting: fc.record({ reason: text, message: text }) }),
  fc.record({ terminated: fc.record({ exitCode: fc.constantFrom(0, 1), reason: text, message: text }) }),
);
const statuses = fc.array(
  fc.record({ name: fc.constantFrom('sandbox', 'keeper', 'program'), state, imageID: text }),
  { maxLength: 3 },
) as fc.Arbitrary<ContainerStatus[]>;
const conditions = fc.array(
  fc.record({
    type: fc.constantFrom('Ready', 'PodScheduled', 'Initialized'),
    status: fc.constantFrom('True', 'False', 'Unknown'),
    reason: text,
    message: text,
  }),
  { maxLength: 3 },
);

it('what is kept of a Pod says of it what the whole says', () => {
  fc.assert(
    fc.property(
      fc.record({
        phase: fc.constantFrom('Pending', 'Running', 'Succeeded', 'Failed'),
        podIP: fc.constantFrom('', '10.0.0.1'),
        ...{ conditions, containerStatuses: statuses, initContainerStatuses: statuses },
        ...{ reason: text, message: text },
      }),
      fc.boolean(),
      (status, is_going) => {
        const whole = pod(status as Pod['status'], is_going ? 'now' : undefined);
        whole.metadata.annotations = { other: 'x', [WEBHOOK_ANNOTATION]: 'host:443' };
        const slim = slimPod(whole);
        const said = (of: Pod) => [podStart(of), isUp(of), isSilent(of), hasEnded(of), hasKeeper(of)];
        expect(said(slim)).toEqual(said(whole));
        expect(slim.metadata.annotations).toEqual({ [WEBHOOK_ANNOTATION]: 'host:443' });
      },
    ),
  );
});
