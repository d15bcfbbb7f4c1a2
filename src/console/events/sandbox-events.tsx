import type { Place } from '../api/place.ts';
import { EventList } from './event-list.tsx';

/** The records of one sandbox, as they are committed. */
export function SandboxEvents({ place }: { place: Place }) {
  return <EventList path={`${place.path}/events/stream`} shows_sandbox={false} />;
}

/** The lifecycle events of a team. */
export function EventsPage() {
  return (
    <div class="page">
      <header class="page-head">
        <h1>Events</h1>
        <span class="muted">lifecycle of the team's sandboxes, the last 7 days and live</span>
      </header>
      <EventList path="/events" shows_sandbox />
    </div>
  );
}
