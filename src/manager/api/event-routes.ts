import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Clock } from '../../base/clock.ts';
import { type HttpApp, success } from '../../base/http/app.ts';
import { onceOver, SseResponse, untilDisconnect } from '../../base/http/sse-response.ts';
import { LIST_LIMIT, LIST_LIMIT_MAX } from '../../contract/defaults.ts';
import { RESUMED } from '../../contract/documents/route-doc.ts';
import { invalidField } from '../../contract/errors.ts';
import { FEED_EVENT_TYPES } from '../../contract/feed.ts';
import { closedObject, namedObject, orNull, Time } from '../../contract/schema/field.ts';
import { pageLimit } from '../../contract/schema/query.ts';
import { type Position, START } from '../database/cursor.ts';
import type { Feed } from '../events/feed.ts';
import type { FeedFilter } from '../events/feed-store.ts';
import { callerOf } from './auth.ts';
import { revoked } from './rights.ts';
import type { PassedShares } from './team-connections.ts';

const Kind = Type.Enum(FEED_EVENT_TYPES, { title: 'LifecycleEventType' });

const PageData = namedObject('EventPage', {
  events: Type.Array(
    namedObject('LifecycleEvent', {
      event_id: Type.String(),
      event_type: Kind,
      sandbox_id: Type.String(),
      sequence: orNull(Type.Integer({ minimum: 1 })),
      timestamp: Time,
      body: Type.String({ description: "the exact body of the webhook's request" }),
    }),
  ),
  next_cursor: Type.String({ minLength: 1 }),
});

const PageQuery = closedObject({
  cursor: Type.Optional(Type.String({ minLength: 1 })),
  limit: pageLimit(LIST_LIMIT, LIST_LIMIT_MAX),
  event_type: Type.Optional(Kind),
  sandbox_id: Type.Optional(Type.String({ minLength: 1, maxLength: 256, pattern: '^[!-~]+$' })),
});

/** What the routes of the feed use. */
export interface EventRouteParts {
  feed: Feed;
  clock: Clock;
  /** Streams count among the calls that are passed through. */
  shares: PassedShares;
}

/** The events of a follower that are read at a time. */
const FOLLOWED_EVENTS = 100;
/** What a follower reads from who asks for everything that is kept. */
const ALL = '0';

/** Registers the route of the team's lifecycle events, in commit order. Source: contract section 7, "The feed of events". */
export function registerEventRoutes(app: HttpApp, parts: EventRouteParts): void {
  const { feed } = parts;
  const config = {
    scope: 'webhooks:read' as const,
    doc: {
      operation_id: 'listEvents',
      tag: 'events' as const,
      summary: "List the team's lifecycle events in commit order; as text/event-stream, follow them",
      data: PageData,
      is_also_stream: true,
      headers: RESUMED,
      errors: ['too_many_requests'] as const,
    },
  };
  app.get('/api/v1/events', { config, schema: { querystring: PageQuery } }, async (request, reply) => {
    const { team_id } = callerOf(request);
    const { cursor, ...filter } = request.query;
    if (!wantsStream(request)) {
      const { events, next_cursor } = await feed.page(team_id, cursor, filter);
      return success({ events, next_cursor });
    }
    const from = await startOf(feed, request, team_id);
    onceOver(reply.raw, parts.shares.acquire(team_id));
    request.leaveShare();
    const writer = new SseResponse(request, reply, parts.clock);
    request.right?.onLoss(() => writer.cutWith(revoked().code));
    await follow(feed, team_id, { ...filter, limit: FOLLOWED_EVENTS }, from, writer).catch(() =>
      writer.cut(),
    );
  });
}

function wantsStream({ headers: { accept = '' } }: FastifyRequest): boolean {
  return accept.split(',').some((range) => range.split(';')[0]?.trim().toLowerCase() === 'text/event-stream');
}

/** Where a follower begins: after its last event, or after now. */
async function startOf(
  feed: Feed,
  request: FastifyRequest<{ Querystring: Static<typeof PageQuery> }>,
  team_id: string,
): Promise<Position> {
  const last = request.headers['last-event-id'];
  if (last === ALL) return START;
  if (Array.isArray(last)) throw invalidField('Last-Event-ID', 'must be one cursor');
  if (last !== undefined) return feed.positionOf(team_id, last, 'Last-Event-ID');
  const { cursor } = request.query;
  return cursor === undefined ? feed.end() : feed.positionOf(team_id, cursor);
}

/** Sends the events after a position, then waits for others. A slow follower delays only itself. */
async function follow(
  feed: Feed,
  team_id: string,
  filter: FeedFilter,
  from: Position,
  writer: SseResponse,
): Promise<void> {
  const follower = feed.followers.add(team_id);
  try {
    let position = from;
    while (!writer.gone.aborted) {
      const more = follower.next();
      const rows = await feed.rows(team_id, position, filter);
      for (const row of rows) {
        position = row;
        const id = feed.cursorOf(team_id, row);
        await writer.write({ id, event: row.event_type, data: row.body });
        if (writer.gone.aborted) return;
      }
      if (rows.length < filter.limit) await untilDisconnect(more, writer.gone);
    }
  } finally {
    follower.leave();
  }
}
