import { type ReactNode, useEffect, useId, useRef } from 'react';

interface DialogProps {
  title: string;
  close: () => void;
  /** Ends the running request. Until it has ended, the dialog stays open. */
  stop?: (() => void) | undefined;
  children: ReactNode;
  actions?: ReactNode;
}

/** A modal dialog. Escape and the button close it, and the focus returns to where it was. */
export function Dialog({ title, close, stop, children, actions }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    if (dialog.current && !dialog.current.open) dialog.current.showModal();
    // A browser returns the focus when a dialog is closed, not when it is taken from the page.
    return () => {
      if (before instanceof HTMLElement && document.activeElement === document.body) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      onClose={close}
      onCancel={(event) => {
        if (!stop) return;
        event.preventDefault();
        stop();
      }}
      aria-labelledby={id}
    >
      <h2 id={id}>{title}</h2>
      {children}
      <div className="row wrap dialog-actions">
        {actions}
        <button type="button" onClick={() => (stop ? stop() : dialog.current?.close())}>
          {stop ? 'Stop' : 'Close'}
        </button>
      </div>
    </dialog>
  );
}
