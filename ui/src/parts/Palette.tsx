// The command palette: pages, workflows and executions by name or id.
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { useExecutions } from '../api/executions';
import { useWorkflows } from '../api/workflows';
import { useSession } from '../api/shared';
import { definitionPath, useDefinitionName } from './definition';
import { PLACES } from './places';
import { setTheme } from './theme';
import { shortId } from './words';

interface Command {
  name: string;
  hint: string;
  run: () => void;
}

const SHOWN_MAX = 12;
const EXECUTION_ID = /^(exec_)?[0-9a-f-]{32,36}$/;

export function Palette({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [search, setSearch] = useState('');
  const [place, setPlace] = useState(0);
  const list = useId();
  const commands = useCommands(search).slice(0, SHOWN_MAX);
  const chosen = Math.min(place, commands.length - 1);
  useEffect(() => {
    if (dialog.current && !dialog.current.open) dialog.current.showModal();
  }, []);
  const run = (command: Command | undefined) => {
    if (!command) return;
    dialog.current?.close();
    command.run();
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setPlace(Math.min(Math.max(chosen + step, 0), commands.length - 1));
    else if (event.key === 'Enter') run(commands[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} className="palette" onClose={close} aria-label="Command palette">
      <input
        type="search"
        role="combobox"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={commands[chosen] && `${list}-${chosen}`}
        aria-label="Go to"
        placeholder="Go to a page, a workflow, an execution …"
        autoFocus
        value={search}
        onKeyDown={press}
        onChange={(event) => {
          setSearch(event.target.value);
          setPlace(0);
        }}
      />
      <ul id={list} role="listbox" aria-label="Found">
        {commands.map((command, index) => (
          <li key={`${command.name} ${command.hint}`} id={`${list}-${index}`} role="option" aria-selected={index === chosen} onClick={() => run(command)} onMouseMove={() => setPlace(index)}>
            <span>{command.name}</span>
            <span className="faint">{command.hint}</span>
          </li>
        ))}
      </ul>
      {commands.length === 0 && <p className="faint">Nothing matches.</p>}
    </dialog>
  );
}

function useCommands(search: string): Command[] {
  const [, navigate] = useLocation();
  const session = useSession();
  const workflows = useWorkflows(search.trim());
  const executions = useExecutions({}, 50);
  const words = search.trim().toLowerCase();
  const go = (name: string, hint: string, path: string): Command => ({ name, hint, run: () => navigate(path) });
  const may = session.data?.permissions ?? [];
  const fixed: Command[] = [
    ...PLACES.filter(({ needs }) => !needs || may.includes(needs)).map(({ name, key, path }) => go(name, `page · g ${key}`, path)),
    ...(may.includes('edit') ? [go('New workflow', 'action', '/workflows/new'), go('New schedule', 'action', '/schedules/new')] : []),
    ...(['system', 'light', 'dark'] as const).map((theme) => ({ name: `Theme: ${theme}`, hint: 'action', run: () => setTheme(theme) })),
  ];
  const found = workflows.data?.pages.flatMap((page) => page.workflows) ?? [];
  const started = executions.data?.pages.flatMap((page) => page.executions) ?? [];
  const nameOf = useDefinitionName([...found, ...started]);
  const named = found.map((workflow) => go(nameOf(workflow), workflow.dialect, definitionPath(workflow)));
  const recent = started.map(({ executionId, workflowName, dialect, status }) => go(`${nameOf({ name: workflowName, dialect })} ${shortId(executionId)}`, status, `/executions/${executionId}`));
  const byId = EXECUTION_ID.test(words) ? [go(words, 'execution by id', `/executions/${words.startsWith('exec_') ? words : `exec_${words}`}`)] : [];
  const matching = [...fixed, ...named, ...recent].filter(({ name, hint }) => `${name} ${hint}`.toLowerCase().includes(words));
  return [...byId, ...matching];
}
