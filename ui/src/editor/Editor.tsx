// An editor for definitions: colours, completion from a JSON Schema, and the problems that the server finds, at their place.
import { autocompletion, closeBrackets, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { bracketMatching, HighlightStyle, indentUnit, syntaxHighlighting } from '@codemirror/language';
import { type Diagnostic, linter, lintGutter, lintKeymap } from '@codemirror/lint';
import { search, searchKeymap } from '@codemirror/search';
import { EditorState, type Text } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, tooltips } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useRef } from 'react';
import { completeFrom, type JsonSchema } from './completion';

/** A problem of the text; lines and columns count from 1. */
export interface Finding {
  severity: 'error' | 'warning';
  message: string;
  line?: number | undefined;
  column?: number | undefined;
}

interface EditorProps {
  label: string;
  source: string;
  isReadOnly: boolean;
  schema?: JsonSchema | undefined;
  change: (source: string) => void;
  check: (source: string) => Promise<Finding[]>;
}

const CHECK_DELAY_MS = 300;
const HINT = 'leave';

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--busy)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--wait)' },
  { tag: tags.comment, color: 'var(--faint)', fontStyle: 'italic' },
  { tag: [tags.keyword, tags.meta, tags.labelName, tags.typeName], color: 'var(--bad)' },
]);

const THEME = EditorView.theme({
  '&': { color: 'var(--text)', backgroundColor: 'var(--card)', fontSize: '13px', maxHeight: '65vh' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-scroller': { fontFamily: 'ui-monospace, Menlo, Consolas, monospace', lineHeight: '1.5', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-content, .cm-gutter': { minHeight: '14rem' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--raised)', color: 'var(--faint)', border: 'none' },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--raised) 60%, transparent)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--busy-back) !important' },
  '.cm-tooltip': { backgroundColor: 'var(--card)', color: 'var(--text)', border: '1px solid var(--line)', borderRadius: '6px', maxWidth: 'min(34rem, 90vw)' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--busy-back)', color: 'var(--text)' },
  '.cm-panels': { backgroundColor: 'var(--raised)', color: 'var(--text)' },
});

/** Chromium gives text that replaces a selection the style of that text, in an attribute, which the policy of the page forbids. */
const REPLACE_SELECTION = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    if (event.inputType !== 'insertText' || event.data === null || event.isComposing || view.state.readOnly || view.state.selection.main.empty) return false;
    event.preventDefault();
    const { data } = event;
    const { from, to } = view.state.selection.main;
    const insert = () => view.state.update(view.state.replaceSelection(data), { userEvent: 'input.type', scrollIntoView: true });
    if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, data, insert))) view.dispatch(insert());
    return true;
  },
});

/** Tooltips stay beside the navigation and the other columns of the page. */
const TOOLTIPS = tooltips({
  tooltipSpace: (view) => {
    const { left, right } = view.dom.getBoundingClientRect();
    return { top: 0, left, right, bottom: window.innerHeight };
  },
});

/** Returns the range of a finding in characters; a finding without a position is at the beginning. */
function rangeOf(doc: Text, { line, column }: Finding): { from: number; to: number } {
  const found = doc.line(Math.min(Math.max(line ?? 1, 1), doc.lines));
  const from = Math.min(found.from + Math.max((column ?? 1) - 1, 0), found.to);
  const word = /^[\w$.-]+/.exec(doc.sliceString(from, found.to));
  return { from, to: word ? from + word[0].length : Math.max(found.to, from) };
}

export default function Editor({ label, source, isReadOnly, schema, change, check }: EditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const latest = useRef({ change, check });
  latest.current = { change, check };
  useEffect(() => {
    const host = place.current;
    if (!host) return;
    // The policy of the page forbids inline styles. Within a shadow root the editor uses constructed sheets, which are allowed.
    const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
    const hint = document.createElement('span');
    hint.id = HINT;
    hint.hidden = true;
    hint.textContent = 'Tab indents. To leave the editor, press Escape and then Tab.';
    root.append(hint);
    const lint = async (view: EditorView): Promise<Diagnostic[]> => {
      const findings = await latest.current.check(view.state.doc.toString());
      return findings.map((finding) => ({ ...rangeOf(view.state.doc, finding), severity: finding.severity, message: finding.message }));
    };
    const view = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: source,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          highlightActiveLine(),
          bracketMatching(),
          closeBrackets(),
          indentUnit.of('  '),
          EditorState.tabSize.of(2),
          EditorState.readOnly.of(isReadOnly),
          yaml(),
          syntaxHighlighting(COLOURS),
          search({ top: true }),
          schema ? autocompletion({ override: [completeFrom(schema)] }) : [],
          isReadOnly ? [] : [lintGutter(), linter(lint, { delay: CHECK_DELAY_MS })],
          keymap.of([...completionKeymap, ...searchKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap, ...(isReadOnly ? [] : [indentWithTab])]),
          EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0', ...(!isReadOnly && { 'aria-describedby': HINT }) }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.change(update.state.doc.toString());
          }),
          REPLACE_SELECTION,
          TOOLTIPS,
          THEME,
        ],
      }),
    });
    return () => {
      view.destroy();
      hint.remove();
    };
    // The editor owns its text: a new text is a new editor (a key of its parent).
  }, [schema, isReadOnly, label]);
  return <div ref={place} className="editor" />;
}
