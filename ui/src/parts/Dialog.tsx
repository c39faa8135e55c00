import { type ReactNode, useEffect, useId, useRef } from 'react';

/** A modal dialog. Escape and the button close it, and the focus returns to where it was. */
export function Dialog({ title, close, children, actions }: { title: string; close: () => void; children: ReactNode; actions?: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    if (dialog.current && !dialog.current.open) dialog.current.showModal();
  }, []);
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
      <div className="row wrap dialog-actions">
        {actions}
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
