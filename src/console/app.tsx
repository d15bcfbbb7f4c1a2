import { useEffect, useRef } from 'preact/hooks';
import { connection } from './api/connection.ts';
import { useRoute } from './base/router.ts';
import { program, token } from './base/session.ts';
import { useStore } from './base/store.ts';
import { DeliveriesPage } from './deliveries/delivery-list.tsx';
import { DeliveryView } from './deliveries/delivery-view.tsx';
import { EventsPage } from './events/sandbox-events.tsx';
import { OverviewPage } from './overview/overview-page.tsx';
import { Boundary } from './parts/boundary.tsx';
import { Empty } from './parts/notes.tsx';
import { Toasts } from './parts/toasts.tsx';
import { QuotasPage } from './quotas/quotas-page.tsx';
import { DaemonPage } from './sandboxes/daemon-page.tsx';
import { SandboxPage } from './sandboxes/sandbox-page.tsx';
import { SandboxesPage } from './sandboxes/sandboxes-page.tsx';
import { Help } from './shell/help.tsx';
import { Nav, Tools } from './shell/nav.tsx';
import { Palette } from './shell/palette.tsx';
import { SignIn } from './shell/sign-in.tsx';
import { UsagePage } from './usage/usage-page.tsx';

/** The whole page. */
export function App() {
  const of = useStore(program);
  const held = useStore(token);
  const main = useRef<HTMLElement>(null);
  const { segments } = useRoute();
  const view = segments.slice(0, 3).join('/');
  const first = segments[0] ?? 'overview';
  useEffect(() => {
    document.title = `${first} · sandboxd console`;
  }, [first]);
  if (of === null) return null;
  const needs_token = of === 'manager' && held === null;
  return (
    <div class="shell">
      <Nav onSkip={() => main.current?.focus()} />
      <div class="content">
        <Banner />
        <main ref={main} class="main" tabIndex={-1}>
          {needs_token ? (
            <Empty title="Not signed in">A token of your team shows what is here.</Empty>
          ) : of === 'daemon' ? (
            <Boundary of={view}>
              <DaemonPage />
            </Boundary>
          ) : (
            <Boundary key={view} of={view}>
              <View segments={segments} />
            </Boundary>
          )}
        </main>
        <footer class="phone-tools">
          <Tools />
        </footer>
      </div>
      <Toasts />
      <Help />
      <Boundary of={view}>
        <Palette />
      </Boundary>
      {of === 'manager' && <SignIn />}
    </div>
  );
}

function View({ segments }: { segments: readonly string[] }) {
  const [first = '', id] = segments;
  switch (first) {
    case '':
      return <OverviewPage />;
    case 'sandboxes':
      return id === undefined ? <SandboxesPage /> : <SandboxPage key={id} sandbox_id={id} />;
    case 'deliveries':
      return id === undefined ? (
        <DeliveriesPage />
      ) : (
        <DeliveryView outbox={null} event_id={id} link={['deliveries']} />
      );
    case 'events':
      return <EventsPage />;
    case 'quotas':
      return <QuotasPage />;
    case 'usage':
      return <UsagePage />;
    default:
      return (
        <Empty title="There is no such view">
          <a href="#/">To the overview</a>
        </Empty>
      );
  }
}

/** Says that nobody answers, as long as that is so. */
function Banner() {
  const is_away = useStore(connection) === 'away';
  const of = useStore(program) ?? 'manager';
  return (
    <div role="status">
      {is_away && (
        <div class="banner">
          The {of} cannot be reached. Trying again; what is shown may be old, and what you have typed stays.
        </div>
      )}
    </div>
  );
}
