import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Icon } from './icon.tsx';

interface DialogProps {
  title: string;
  /** Null: it stays until it has done its work. */
  onClose: (() => void) | null;
  /** What the form does; a dialog without it holds no form. */
  onSubmit?: () => void;
  /** The buttons at its end. */
  actions?: ComponentChildren;
  is_wide?: boolean;
  children: ComponentChildren;
}

/** A window over the page: it keeps the focus, and Escape closes it. */
export function Dialog({ title, onClose, onSubmit, actions, is_wide = false, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const title_id = useId();
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const content = (
    <>
      <div class="dialog-head">
        <h2 id={title_id}>{title}</h2>
        {onClose && (
          <button type="button" class="button is-plain is-icon" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        )}
      </div>
      <div class="dialog-body">{children}</div>
      {actions && <div class="dialog-foot">{actions}</div>}
    </>
  );
  return (
    <dialog
      ref={element}
      class={`dialog${is_wide ? ' is-wide' : ''}`}
      aria-labelledby={title_id}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
    >
      {onSubmit ? (
        <form
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            onSubmit();
          }}
        >
          {content}
        </form>
      ) : (
        <div class="stack-dialog">{content}</div>
      )}
    </dialog>
  );
}
