import { ApiError } from '../../contract/errors.ts';
import type { ContainerStatus, Pod, PodCondition } from './api/objects.ts';
import { KEEPER, SANDBOX } from './manifests.ts';
import { WEBHOOK_ANNOTATION } from './names.ts';

/** Why a container does not start, and will not without somebody's help. */
const STUCK = new Set([
  'CreateContainerConfigError',
  'CreateContainerError',
  'ErrImageNeverPull',
  'ErrImagePull',
  'ImageInspectError',
  'ImagePullBackOff',
  'InvalidImageName',
  'RunContainerError',
]);
/** The scheduler waits for a volume that is still being made. */
const WAITS_FOR_VOLUME = /unbound|waiting for a volume|persistentvolumeclaim ".*" not found/i;

/**
 * A Pod that is being started.
 * - `starting`: nothing is decided yet
 * - `up`: its containers run, and it has an address
 * - `failed`: it will not start; `error` says why
 */
export type PodStart =
  | { state: 'starting' }
  | { state: 'up'; host: string }
  | { state: 'failed'; error: ApiError };

/** What has become of a Pod that was asked for. Nothing in it holds a secret. */
export function podStart(pod: Pod): PodStart {
  const { phase, podIP, conditions = [], containerStatuses = [], reason, message } = pod.status ?? {};
  // One that has done its work is no failure.
  const before = (pod.status?.initContainerStatuses ?? []).filter(
    ({ state }) => state?.terminated?.exitCode !== 0,
  );
  if (pod.metadata.deletionTimestamp) return failed('internal_error', 'it was deleted');
  for (const { name, state } of [...before, ...containerStatuses]) {
    const { waiting, terminated } = state ?? {};
    if (waiting && STUCK.has(waiting.reason ?? '')) {
      return failed('internal_error', `${name}: ${waiting.reason}: ${waiting.message ?? ''}`);
    }
    if (terminated) {
      const why = terminated.message?.trim().split('\n').at(-1) || `exit code ${terminated.exitCode}`;
      return failed('internal_error', `${name}: ${terminated.reason ?? 'ended'}: ${why}`);
    }
  }
  if (phase === 'Failed') return failed('internal_error', `${reason ?? 'Failed'}: ${message ?? ''}`);
  const scheduled = conditions.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status === 'False' && scheduled.reason === 'Unschedulable') {
    const why = scheduled.message ?? '';
    if (!WAITS_FOR_VOLUME.test(why)) return failed('capacity_exhausted', why);
  }
  const is_up = containerStatuses.length > 0 && containerStatuses.every(({ state }) => state?.running);
  return is_up && podIP ? { state: 'up', host: podIP } : { state: 'starting' };
}

function failed(code: 'capacity_exhausted' | 'internal_error', why: string): PodStart {
  const what = code === 'capacity_exhausted' ? 'The cluster has no room' : "The sandbox's Pod did not start";
  return { state: 'failed', error: new ApiError(code, `${what}: ${why.trim().slice(0, 1024)}`) };
}

/** Whether the sandbox in a Pod can be reached, as far as the cluster knows; a keeper that has died has lost it. */
export function isUp(pod: Pod): boolean {
  return !isOver(pod) && !isSilent(pod);
}

/** Whether a Pod that ran is on a node that the cluster has not heard of for a while; it may run on. */
export function isSilent(pod: Pod): boolean {
  return !isOver(pod) && isUnheard(pod);
}

/** The same of a Pod that may be being removed. */
export function isUnheard(pod: Pod): boolean {
  // Nothing probes the containers: what runs is ready, as far as its node can say so.
  const is_ready = pod.status?.conditions?.find(({ type }) => type === 'Ready')?.status !== 'False';
  return !is_ready && [SANDBOX, KEEPER].every((name) => containerOf(pod, name)?.state?.running);
}

/** Whether a Pod or one of its containers is being removed or has ended. */
function isOver(pod: Pod): boolean {
  const { phase } = pod.status ?? {};
  if (pod.metadata.deletionTimestamp || phase === 'Failed' || phase === 'Succeeded') return true;
  return [SANDBOX, KEEPER].some((name) => containerOf(pod, name)?.state?.terminated);
}

/** Whether nothing of the sandbox in a Pod runs any more, as its node has said. */
export function hasEnded(pod: Pod): boolean {
  const { phase } = pod.status ?? {};
  if (phase === 'Failed' || phase === 'Succeeded') return true;
  return containerOf(pod, SANDBOX)?.state?.terminated !== undefined;
}

/** Whether the keeper in a Pod runs, as far as the cluster knows. */
export function hasKeeper(pod: Pod): boolean {
  return containerOf(pod, KEEPER)?.state?.running !== undefined && !pod.metadata.deletionTimestamp;
}

function containerOf(pod: Pod, name: string): ContainerStatus | undefined {
  return pod.status?.containerStatuses?.find((each) => each.name === name);
}

const RUNS: ContainerStatus['state'] = { running: {} };
/** What a Pod says of itself that is read here. */
const READ_CONDITIONS = new Set(['PodScheduled', 'Ready']);

/** A Pod without what nobody reads of it: some 13 kB of the cluster are a few hundred bytes here. */
export function slimPod({ metadata, status = {} }: Pod): Pod {
  const { name, uid, resourceVersion, deletionTimestamp, annotations } = metadata;
  const webhook = annotations?.[WEBHOOK_ANNOTATION];
  const { phase, podIP, reason, message, conditions = [] } = status;
  return {
    metadata: {
      ...{ name, uid, resourceVersion },
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      ...(webhook === undefined ? {} : { annotations: { [WEBHOOK_ANNOTATION]: webhook } }),
    },
    spec: {},
    status: {
      ...(phase === undefined ? {} : { phase }),
      ...(podIP === undefined ? {} : { podIP }),
      ...(reason === undefined ? {} : { reason }),
      ...(message === undefined ? {} : { message }),
      conditions: conditions.filter(({ type }) => READ_CONDITIONS.has(type)).map(slimCondition),
      initContainerStatuses: (status.initContainerStatuses ?? []).map(slimContainer),
      containerStatuses: (status.containerStatuses ?? []).map(slimContainer),
    },
  };
}

function slimCondition({ type, status, reason, message }: PodCondition): PodCondition {
  if (status === 'True') return { type, status };
  return { type, status, ...(reason ? { reason } : {}), ...(message ? { message } : {}) };
}

function slimContainer({ name, state }: ContainerStatus): ContainerStatus {
  return { name, ...(state === undefined ? {} : { state: state.running ? RUNS : state }) };
}
