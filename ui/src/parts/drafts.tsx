// Definitions that were typed and not yet saved. They are kept in this tab of the browser, over other pages and a reload, until they are saved or
// discarded, or their user signs out.
import { useEffect, useState } from 'react';
import { useSession } from '../api/shared';

/** The text that a draft began with, and its version, if it has one. */
interface Base {
  source: string;
  version?: number;
}

interface Draft {
  base: Base;
  text: string;
}

const PREFIX = 'windlass.draft ';

export function useDraft(name: string, current: Base) {
  const session = useSession().data;
  const key = `${PREFIX}${session?.id} ${session?.tenantId} ${name}`;
  const [draft, setDraft] = useState(() => readDraft(key, current) ?? begin(current));
  // An editor owns its text: a text that was not typed is a new editor.
  const [editor, setEditor] = useState(0);
  const isChanged = draft.text !== draft.base.source;
  useEffect(() => writeDraft(key, isChanged ? draft : undefined), [key, draft, isChanged]);
  useWarning(isChanged);
  return {
    ...draft,
    editor,
    isChanged,
    change: (text: string) => setDraft((before) => ({ ...before, text })),
    /** Text that was typed meanwhile is not saved. */
    saved: (base: Base) => setDraft(({ text }) => ({ base, text })),
    /** Forgets the draft, as its text was sent. */
    drop: () => writeDraft(key, undefined),
    load: () => {
      if (isChanged && !window.confirm('Discard what was typed and not saved?')) return;
      setDraft(begin(current));
      setEditor(editor + 1);
    },
  };
}

const begin = (current: Base): Draft => ({ base: current, text: current.source });

/** A draft that was saved meanwhile is none. */
function readDraft(key: string, current: Base): Draft | undefined {
  const kept = sessionStorage.getItem(key);
  const draft = kept === null ? undefined : (JSON.parse(kept) as Draft);
  return draft && draft.text !== current.source ? draft : undefined;
}

function writeDraft(key: string, draft: Draft | undefined): void {
  if (!draft) return sessionStorage.removeItem(key);
  try {
    sessionStorage.setItem(key, JSON.stringify(draft));
  } catch {
    // The storage of a tab is limited. The browser still warns before the text is lost.
  }
}

/** Forgets the drafts of all users but one. */
export function dropDrafts(user?: string): void {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX) && !key.startsWith(`${PREFIX}${user} `)) sessionStorage.removeItem(key);
}

/** The browser asks before it leaves the page. */
function useWarning(isOn: boolean): void {
  useEffect(() => {
    if (!isOn) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', warn);
    return () => window.removeEventListener('beforeunload', warn);
  }, [isOn]);
}

/** Says that a text is not saved. */
export function Unsaved({ draft: { isChanged, load } }: { draft: { isChanged: boolean; load: () => void } }) {
  if (!isChanged) return null;
  return (
    <span className="row faint">
      unsaved draft
      <button type="button" className="quiet" onClick={load}>
        discard
      </button>
    </span>
  );
}
