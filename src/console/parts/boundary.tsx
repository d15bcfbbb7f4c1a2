import { Component, type ComponentChildren } from 'preact';
import { problemOf } from '../api/problem.ts';
import { after } from '../base/clock.ts';
import { ProblemNote } from './notes.tsx';

/** How long a view stays away that fails anew each time. */
const AGAIN_MS = 5_000;

interface BoundaryProps {
  /** What is shown: where it is another, it is shown anew at once. */
  of: unknown;
  children: ComponentChildren;
}

interface BoundaryState {
  error: unknown;
  of: unknown;
}

/**
 * Keeps to one view what an answer does that makes no sense: in its place is what went wrong, until there is something
 * else to show, and at the latest for 5 s. Without it the whole page stays broken until it is loaded again.
 */
export class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { error: null, of: undefined };
  #cancel = () => {};

  override componentDidCatch(error: unknown): void {
    this.setState({ error: error ?? new Error('unknown'), of: this.props.of });
    this.#cancel();
    this.#cancel = after(AGAIN_MS, this.#again);
  }

  override componentWillUnmount(): void {
    this.#cancel();
  }

  readonly #again = () => {
    this.#cancel();
    this.setState({ error: null });
  };

  override render({ of, children }: BoundaryProps, { error, of: failed }: BoundaryState): ComponentChildren {
    if (error === null || of !== failed) return children;
    const { message, ...problem } = problemOf(error);
    return (
      <ProblemNote
        problem={{ ...problem, message: `An answer makes no sense: ${message}` }}
        onRetry={this.#again}
      />
    );
  }
}
