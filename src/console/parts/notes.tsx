import type { ComponentChildren } from 'preact';
import { missingScope, type Problem } from '../api/problem.ts';

/** What went wrong, and what to do about it. */
export function ProblemNote({ problem, onRetry }: { problem: Problem; onRetry?: () => void }) {
  const scope = missingScope(problem);
  if (scope !== null) {
    return (
      <div class="note is-warn" role="status">
        <strong>This token may not see or do this</strong>
        <span>
          It lacks the scope <code>{scope}</code>. Sign in with a token that has it:{' '}
          <code>sandbox-manager token create --team … --scope {scope}</code>
        </span>
      </div>
    );
  }
  const { field } = problem.details;
  return (
    <div class="note is-bad" role="alert">
      <strong>{HEADINGS[problem.code] ?? 'That did not work'}</strong>
      <span class="text">
        {problem.message}
        {typeof field === 'string' && !problem.message.includes(field) && ` (${field})`}
      </span>
      {problem.retry_after_s !== null && <span>Try again in {problem.retry_after_s} s.</span>}
      {onRetry && (
        <button type="button" class="button is-small" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

const HEADINGS: Record<string, string> = {
  unreachable: 'Nobody answers',
  not_found: 'This is not there, or no longer',
  conflict: 'Not in the present state',
  quota_exceeded: "The team's quota is used up",
  capacity_exhausted: 'Not enough room',
  invalid_request: 'The request was refused',
  unauthorized: 'Not signed in',
  forbidden: 'Not allowed',
  unavailable: 'Not available right now',
  gone: 'No longer kept',
};

/** Nothing is there, and what to do about it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children && <p>{children}</p>}
    </div>
  );
}
