import { SANDBOX_PAGE_MAX } from '../contract/limits.ts';
import { type ClientOptions, HttpClient } from './http-client.ts';
import { ClaimedSandbox, ManagedSandbox } from './managed-sandbox.ts';
import type { paths } from './openapi/manager-api.ts';
import { cursorPages } from './pages.ts';
import type { AnswerOf, CallOptions, InitOf } from './routes.ts';
import { type FollowStreamOptions, followEvents } from './streams/reconnect.ts';

type QueryOf<Path extends keyof paths> = NonNullable<
  InitOf<paths, Path, 'get'> extends { query?: infer Query } ? Query : never
>;
type ItemOf<Path extends keyof paths, Key extends string> =
  AnswerOf<paths, Path, 'get'> extends { [Each in Key]: (infer Item)[] } ? Item : never;

/** The body of a claim. */
export type Claim = NonNullable<InitOf<paths, '/api/v1/sandboxes', 'post'>['body']>;
/** A sandbox in a list. */
export type SandboxRecord = ItemOf<'/api/v1/sandboxes', 'sandboxes'>;
/** A delivery of the manager's outbox. */
export type TeamDelivery = ItemOf<'/api/v1/webhooks/deliveries', 'deliveries'>;
/** A closed window of usage. */
export type UsageWindow = ItemOf<'/api/v1/usage/windows', 'windows'>;

/** An event of the team's feed; store `cursor`, the place after it, once the event is kept. */
export interface FollowedEvent {
  cursor: string;
  event_type: string;
  /** The exact text of the webhook's request. */
  body: string;
}

/** Which events are followed, and from where: after `cursor`, from the oldest that is kept, or from now on. */
export interface FollowOptions
  extends FollowStreamOptions,
    Pick<QueryOf<'/api/v1/events'>, 'event_type' | 'sandbox_id'> {
  cursor?: string;
  from_oldest?: boolean;
}

/** A client of `sandbox-manager`. Contract section 7. */
export class ManagerClient extends HttpClient<paths> {
  /** Streams, files and pages of one sandbox, through the manager. */
  sandbox(sandbox_id: string): ManagedSandbox {
    return new ManagedSandbox(this as HttpClient<unknown>, sandbox_id);
  }

  /**
   * Claims a sandbox: `await manager.claim({ config: { ttl: 3600 } })`. With `await using` it is deleted at the end of the
   * block, however that ends; otherwise it stays until it is deleted or expires. Contract section 7, POST `/sandboxes`.
   */
  async claim(claim: Claim = {}, options: CallOptions = {}): Promise<ClaimedSandbox> {
    const { sandbox_id } = await this.POST('/api/v1/sandboxes', { ...options, body: claim });
    return new ClaimedSandbox(this as HttpClient<unknown>, sandbox_id);
  }

  /** The team's sandboxes, page by page. What is claimed or deleted meanwhile may move others between pages. */
  async *sandboxes(
    query: Omit<QueryOf<'/api/v1/sandboxes'>, 'offset'> = {},
  ): AsyncGenerator<SandboxRecord, void> {
    for (let offset = 0; ; ) {
      const page = await this.GET('/api/v1/sandboxes', {
        query: { limit: SANDBOX_PAGE_MAX, ...query, offset },
      });
      yield* page.sandboxes;
      offset += page.sandboxes.length;
      if (!page.has_more || page.sandboxes.length === 0) return;
    }
  }

  /** The team's part of the manager's outbox, newest first, page by page. */
  deliveries(query: QueryOf<'/api/v1/webhooks/deliveries'> = {}): AsyncGenerator<TeamDelivery, void> {
    return cursorPages(query.cursor, async (cursor) => {
      const paged = cursor === undefined ? query : { ...query, cursor };
      const { deliveries, next_cursor } = await this.GET('/api/v1/webhooks/deliveries', { query: paged });
      return { items: deliveries, next_cursor };
    });
  }

  /**
   * Pages of closed usage windows after `cursor`, up to what is closed by now. Store the `next_cursor` of a page once its
   * windows are kept; the last page is empty.
   */
  async *usageWindows(query: QueryOf<'/api/v1/usage/windows'> = {}) {
    for (let { cursor } = query; ; ) {
      const paged = cursor === undefined ? query : { ...query, cursor };
      const page = await this.GET('/api/v1/usage/windows', { query: paged });
      yield page;
      if (page.windows.length === 0) return;
      cursor = page.next_cursor;
    }
  }

  /** Follows the team's lifecycle events; it reconnects where it was. Contract section 7, "The feed of events". */
  async *events({
    cursor,
    from_oldest,
    signal,
    onConnection,
    reconnect_ms,
    ...query
  }: FollowOptions = {}): AsyncGenerator<FollowedEvent, void> {
    const begin = cursor ?? (from_oldest ? '0' : null);
    const open = (last_id: string | null) => {
      const id = last_id ?? begin;
      const resumed: Record<string, string> = id === null ? {} : { 'last-event-id': id };
      const headers = { accept: 'text/event-stream', ...resumed };
      return this.ask('GET', '/api/v1/events', { query, headers, signal });
    };
    for await (const { id, event, data } of followEvents({ open, signal, onConnection, reconnect_ms })) {
      yield { cursor: id, event_type: event, body: data };
    }
  }
}

/**
 * A client of `sandbox-manager`. Every call gives the `data` of its answer and throws a `SandboxdError` otherwise:
 * `manager.POST('/api/v1/sandboxes', { body: { config: { ttl: 3600 } } })`. Contract section 7.
 */
export function createManagerClient(options: ClientOptions): ManagerClient {
  return new ManagerClient(options);
}
