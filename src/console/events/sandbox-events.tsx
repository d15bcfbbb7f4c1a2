import { manager } from '../api/client.ts';
import type { Place } from '../api/place.ts';
import { EventList } from './event-list.tsx';
import type { EventSource } from './use-events.ts';

/** The records of one sandbox, as they are committed. */
export function SandboxEvents({ place: { path, sandbox } }: { place: Place }) {
  const source: EventSource = {
    key: path,
    async *open(signal, onConnection) {
      for await (const { sequence, ...event } of sandbox.events({ after: 0, signal, onConnection })) {
        yield { key: String(sequence), ...event };
      }
    },
  };
  return <EventList source={source} shows_sandbox={false} />;
}

const TEAM: EventSource = {
  key: 'team',
  async *open(signal, onConnection) {
    for await (const { cursor, ...event } of manager.events({ from_oldest: true, signal, onConnection })) {
      yield { key: cursor, ...event };
    }
  },
};

/** The lifecycle events of a team. */
export function EventsPage() {
  return (
    <div class="page">
      <header class="page-head">
        <h1>Events</h1>
        <span class="muted">lifecycle of the team's sandboxes, the last 7 days and live</span>
      </header>
      <EventList source={TEAM} shows_sandbox />
    </div>
  );
}
