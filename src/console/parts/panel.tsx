import type { ComponentChildren } from 'preact';

/** A part of a page under a title of its own. */
export function Panel({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="panel" aria-label={title}>
      <div class="panel-head">
        <h2>{title}</h2>
      </div>
      <div class="panel-body">{children}</div>
    </section>
  );
}
