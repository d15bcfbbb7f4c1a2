import type { ComponentChildren } from 'preact';

/** Names and what they stand for; what is null is left out. */
export function Facts({ facts }: { facts: readonly (readonly [string, ComponentChildren] | null)[] }) {
  return (
    <dl class="facts">
      {facts.flatMap((fact) =>
        fact === null ? [] : [<dt key={`${fact[0]} name`}>{fact[0]}</dt>, <dd key={fact[0]}>{fact[1]}</dd>],
      )}
    </dl>
  );
}
