import { type Clock, runTime, sleep } from '../../base/clock.ts';
import { ApiError } from '../../contract/errors.ts';
import { type ClusterClient, ClusterRefusal, isQuota } from './api/cluster-client.ts';
import { ObjectWatch } from './api/object-watch.ts';
import type { Pod } from './api/objects.ts';
import { MANAGED_SELECTOR } from './names.ts';
import { isUnheard, podStart, slimPod } from './pod-state.ts';

/** How long a Pod may take to start, image and volume included, in ms. */
const START_TIMEOUT_MS = 120_000;
const UNHEARD_TIMEOUT_MS = 5_000;
const POLL_MS = 100;
/** How long a watch is believed that says nothing: its connection may be gone without a word. */
const WATCH_MAX_MS = 30_000;
/** Pods in one answer, which are 13 kB each: larger ones hold up the thread that parses them, and cost 100 MB of memory more. */
const LIST_PAGE = 25;

/** The Pods of sandboxes. */
export class Pods {
  readonly #client: ClusterClient;
  readonly #clock: Clock;
  readonly #watch: ObjectWatch<Pod, Pod>;

  constructor(client: ClusterClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
    const path = `${client.path('pods')}?labelSelector=${MANAGED_SELECTOR}`;
    const followed = { client, clock, path, form: 'whole', page: LIST_PAGE, keep: slimPod } as const;
    this.#watch = new ObjectWatch(followed);
  }

  /** A Pod as it is now; null if there is none. */
  read(name: string): Promise<Pod | null> {
    return this.#client.get<Pod>(this.#client.path('pods', name));
  }

  /** A Pod as the cluster has last told it, without what nobody reads; null if it has told of none. Throws `unavailable`. */
  async readRecent(name: string): Promise<Pod | null> {
    return (await this.#watch.known()).get(name) ?? null;
  }

  /** Begins to follow all of them. Idempotent. */
  start(): void {
    this.#watch.start();
  }

  /** Follows them no more. Idempotent. */
  async stop(): Promise<void> {
    await this.#watch.stop();
  }

  /** Makes a Pod. Throws `capacity_exhausted` where the namespace may have no more. */
  async create(manifest: object): Promise<Pod> {
    try {
      return await this.#client.create<Pod>(this.#client.path('pods'), manifest);
    } catch (error) {
      if (error instanceof ClusterRefusal && isQuota(error.message)) {
        throw new ApiError('capacity_exhausted', `The namespace has no room: ${error.message}`);
      }
      throw error;
    }
  }

  /** Waits until a Pod is up; resolves with its address. Throws why it is not. */
  async untilUp(pod: Pod): Promise<string> {
    return this.#until(pod, START_TIMEOUT_MS, (now) => {
      if (now === null) throw new ApiError('internal_error', "The sandbox's Pod was removed.");
      const start = podStart(now);
      if (start.state === 'failed') throw start.error;
      return start.state === 'up' ? start.host : null;
    });
  }

  /** Rejects as soon as a Pod cannot serve any more, with the reason; never resolves before `over`. */
  async untilFailed(pod: Pod, over: AbortSignal): Promise<void> {
    await this.#until(
      pod,
      Number.POSITIVE_INFINITY,
      (now) => {
        const start = now && podStart(now);
        if (start === null) throw new ApiError('internal_error', "The sandbox's Pod was removed.");
        if (start.state === 'failed') throw start.error;
        return over.aborted || null;
      },
      over,
    );
  }

  /** Waits until `isDone` holds, or the Pod is gone; false if it takes longer than `within_ms`. */
  async wait(pod: Pod, within_ms: number, isDone: (pod: Pod) => boolean): Promise<boolean> {
    try {
      return await this.#until(pod, within_ms, (now) => (now === null || isDone(now) ? true : null));
    } catch (error) {
      if (error instanceof TooLong) return false;
      throw error;
    }
  }

  /** What `verdict` says of a Pod, as it is and as it changes; null is no verdict, and of a Pod that is gone it is told null. */
  async #until<Verdict>(
    pod: Pod,
    within_ms: number,
    verdict: (pod: Pod | null) => Verdict | null,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<Verdict> {
    const { name, uid } = pod.metadata;
    const until_ms = runTime(this.#clock).monotonicMs() + within_ms;
    const query = `?fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}`;
    for (let now: Pod | null = pod; ; ) {
      const said = verdict(now?.metadata.uid === uid ? now : null);
      if (said !== null) return said;
      const left_ms = until_ms - runTime(this.#clock).monotonicMs();
      if (left_ms <= 0) throw new TooLong(now);
      const over = new AbortController();
      const end = () => over.abort();
      signal.addEventListener('abort', end);
      if (signal.aborted) end();
      const timer = runTime(this.#clock).after(Math.min(left_ms, WATCH_MAX_MS), end);
      const version = now?.metadata.resourceVersion ?? '0';
      try {
        for await (const { type, object } of this.#client.watch<Pod>(
          this.#client.path('pods') + query,
          version,
          over.signal,
        )) {
          if (type === 'ERROR' || type === 'BOOKMARK') break;
          const later = verdict(type === 'DELETED' || object.metadata.uid !== uid ? null : object);
          if (later !== null) return later;
        }
      } catch (error) {
        // The connection may end at any time: what counts is read again.
        if (!(error instanceof ApiError) || error.code !== 'unavailable') throw error;
        await sleep(this.#clock, POLL_MS);
      } finally {
        timer.cancel();
        signal.removeEventListener('abort', end);
        over.abort();
      }
      if (!signal.aborted) now = await this.read(name);
    }
  }

  /**
   * Removes a Pod and waits until its node has ended it; false if that takes longer than `within_ms`, or a moment where the
   * cluster does not hear of that node: what else is to be removed does not wait for it.
   */
  async remove(name: string, grace_s: number, within_ms: number): Promise<boolean> {
    const pod = await this.read(name);
    if (pod === null) return true;
    await this.#client.remove(this.#client.path('pods', name), { grace_s });
    return this.wait(pod, isUnheard(pod) ? Math.min(within_ms, UNHEARD_TIMEOUT_MS) : within_ms, () => false);
  }
}

class TooLong extends ApiError {
  constructor(pod: Pod | null) {
    const { conditions = [], phase = 'Pending' } = pod?.status ?? {};
    const why = conditions.find(({ status }) => status === 'False')?.message ?? phase;
    super('internal_error', `The sandbox's Pod takes too long: ${why}`);
  }
}
