import type { FastifyRequest } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import { onceOver, SseResponse, untilDisconnect } from '../../base/http/sse-response.ts';
import { invalidField } from '../../contract/errors.ts';
import { type Position, START } from '../database/cursor.ts';
import type { Feed } from '../events/feed.ts';
import type { FeedFilter } from '../events/feed-store.ts';
import { callerOf } from './auth.ts';
import { revoked } from './rights.ts';
import type { ApiHandlers } from './routes.ts';
import type { PassedShares } from './team-connections.ts';

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

/** The route of the team's lifecycle events, in commit order. Source: contract section 7, "The feed of events". */
export function feedHandlers({ feed, clock, shares }: EventRouteParts) {
  return {
    async listEvents({ query, request, reply }) {
      const { team_id } = callerOf(request);
      const { cursor, ...filter } = query;
      if (!wantsStream(request)) {
        const { events, next_cursor } = await feed.page(team_id, cursor, filter);
        return { events, next_cursor };
      }
      const from = await startOf(feed, request, team_id, cursor);
      onceOver(reply.raw, shares.acquire(team_id));
      request.leaveShare();
      const writer = new SseResponse(request, reply, clock);
      request.right?.onLoss(() => writer.cutWith(revoked().code));
      await follow(feed, team_id, { ...filter, limit: FOLLOWED_EVENTS }, from, writer).catch(() =>
        writer.cut(),
      );
    },
  } satisfies Partial<ApiHandlers>;
}

function wantsStream({ headers: { accept = '' } }: FastifyRequest): boolean {
  return accept.split(',').some((range) => range.split(';')[0]?.trim().toLowerCase() === 'text/event-stream');
}

/** Where a follower begins: after its last event, or after now. */
async function startOf(
  feed: Feed,
  request: FastifyRequest,
  team_id: string,
  cursor: string | undefined,
): Promise<Position> {
  const last = request.headers['last-event-id'];
  if (last === ALL) return START;
  if (Array.isArray(last)) throw invalidField('Last-Event-ID', 'must be one cursor');
  if (last !== undefined) return feed.positionOf(team_id, last, 'Last-Event-ID');
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
