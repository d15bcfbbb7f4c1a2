import type { ComponentChildren } from 'preact';
import type { Resource } from '../api/resource.ts';
import { Boundary } from './boundary.tsx';
import { ProblemNote } from './notes.tsx';

/** What is shown of something that is loaded: its problem, that it is on its way, or itself. */
export function Loaded<Data>({
  resource,
  children,
}: {
  resource: Resource<Data>;
  children: (data: Data) => ComponentChildren;
}) {
  const { data, problem, is_loading, reload } = resource;
  return (
    <>
      {problem && <ProblemNote problem={problem} onRetry={reload} />}
      {data === null && is_loading && !problem && (
        <div class="empty" role="status">
          Loading…
        </div>
      )}
      {data !== null && (
        <Boundary of={data}>
          <Shown data={data}>{children}</Shown>
        </Boundary>
      )}
    </>
  );
}

/** What fails in `children` fails below the boundary. */
function Shown<Data>({ data, children }: { data: Data; children: (data: Data) => ComponentChildren }) {
  return <>{children(data)}</>;
}
