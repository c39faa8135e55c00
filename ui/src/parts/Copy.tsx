import { useEffect, useState } from 'react';
import { announce } from './announce';

/** A long text is built when it is copied. */
export function Copy({ text, label, isOff = false }: { text: string | (() => string); label: string; isOff?: boolean }) {
  const [isDone, setDone] = useState<boolean>();
  useEffect(() => {
    if (isDone === undefined) return;
    const timer = setTimeout(() => setDone(undefined), 1_500);
    return () => clearTimeout(timer);
  }, [isDone]);
  const copy = async () => {
    const isCopied = await copyText(typeof text === 'string' ? text : text());
    setDone(isCopied);
    announce(isCopied ? 'Copied.' : 'The browser did not allow the page to copy. Select the text instead.');
  };
  return (
    <button type="button" className="quiet" disabled={isOff} onClick={() => void copy()} title={typeof text !== 'string' || text.length > 200 ? undefined : text}>
      {isDone === undefined ? label : isDone ? 'copied' : 'not copied'}
    </button>
  );
}

/** Browsers offer the clipboard to pages from https and from this machine only; to others they offer the selection. */
async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const before = document.activeElement;
  const area = document.createElement('textarea');
  area.value = text;
  // Outside of an open dialog nothing can be selected.
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const isDone = document.execCommand('copy');
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return isDone;
}
