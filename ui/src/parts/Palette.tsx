// The command palette: pages, definitions, schedules, actions and executions by name or id.
import { type KeyboardEvent, type MouseEvent, useEffect, useId, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { useExecutions } from '../api/executions';
import { useKnownActions, useRecentPlans } from '../api/plans';
import { useKnownSchedules } from '../api/schedules';
import { useSession } from '../api/shared';
import { useWorkflows } from '../api/workflows';
import { useLater } from './address';
import { Problem } from './basics';
import { definitionPath, planTitle, useDefinitionName } from './definition';
import { PLACES } from './places';
import { setTheme } from './theme';
import { shortId } from './words';

interface Command {
  /** The address that it leads to, or the action. */
  id: string;
  name: string;
  hint: string;
  run: () => void;
}

/** Maximum number of commands of one kind: the list is read as a whole. */
const OF_KIND_MAX = 6;
/** Executions read for the palette, and pages of those that the server searches for them. */
const EXECUTIONS = 20;
const PAGES_MAX = 5;
const EXECUTION_ID = /^(exec_)?[0-9a-f-]{32,36}$/;

export function Palette({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [search, setSearch] = useState('');
  const [place, setPlace] = useState(0);
  const list = useId();
  const { commands, isSearching, error } = useCommands(search);
  const chosen = Math.min(place, commands.length - 1);
  useEffect(() => {
    if (dialog.current && !dialog.current.open) dialog.current.showModal();
  }, []);
  // The close event comes later, and would also close a palette that was opened again in between.
  const leave = () => {
    dialog.current?.close();
    close();
  };
  const run = (command: Command | undefined) => {
    if (!command) return;
    leave();
    command.run();
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) move(Math.min(Math.max(chosen + step, 0), commands.length - 1));
    else if (event.key === 'Enter') run(commands[chosen]);
    else return;
    event.preventDefault();
  };
  const move = (to: number) => {
    setPlace(to);
    document.getElementById(`${list}-${to}`)?.scrollIntoView({ block: 'nearest' });
  };
  /** A click beside the dialog is one on its backdrop. */
  const click = (event: MouseEvent<HTMLDialogElement>) => {
    const { left, right, top, bottom } = event.currentTarget.getBoundingClientRect();
    const isInside = event.clientX >= left && event.clientX <= right && event.clientY >= top && event.clientY <= bottom;
    if (event.target === event.currentTarget && !isInside) leave();
  };
  return (
    <dialog ref={dialog} className="palette" onClose={close} onClick={click} aria-label="Command palette">
      <div className="row">
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
        <button type="button" className="quiet" onClick={leave}>
          Close
        </button>
      </div>
      <ul id={list} role="listbox" aria-label="Found">
        {commands.map((command, index) => (
          <li key={command.id} id={`${list}-${index}`} role="option" aria-selected={index === chosen} onClick={() => run(command)} onMouseMove={() => setPlace(index)}>
            <span>{command.name}</span>
            <span className="faint">{command.hint}</span>
          </li>
        ))}
      </ul>
      <p className="faint" role="status">
        {isSearching ? 'Searching …' : commands.length === 0 && 'Nothing matches.'}
      </p>
      {error && <Problem error={error} />}
    </dialog>
  );
}

interface Found {
  commands: Command[];
  isSearching: boolean;
  error: Error | null | undefined;
}

function useCommands(search: string): Found {
  const [, navigate] = useLocation();
  const may = useSession().data?.permissions ?? [];
  const words = search.trim().toLowerCase();
  const later = useLater(words) ?? '';
  const workflows = useWorkflows(later);
  const executions = useFoundExecutions(later);
  const plans = useRecentPlans(true);
  const schedules = useKnownSchedules();
  const actions = useKnownActions();
  // Until the server has answered, what it found before is searched.
  const isCurrent = ({ isPlaceholderData }: { isPlaceholderData: boolean }) => !isPlaceholderData && later === words;
  const has = (...texts: (string | null | undefined)[]) => texts.some((text) => text?.toLowerCase().includes(words));
  const go = (name: string, hint: string, path: string): Command => ({ id: path, name, hint, run: () => navigate(path) });
  const fixed: Command[] = [
    ...PLACES.filter(({ needs }) => !needs || may.includes(needs)).map(({ name, key, path }) => go(name, `page · g ${key}`, path)),
    ...(may.includes('edit') ? [go('New workflow', 'action', '/workflows/new'), go('New schedule', 'action', '/schedules/new')] : []),
    ...(['system', 'light', 'dark'] as const).map((theme) => ({ id: `theme ${theme}`, name: `Theme: ${theme}`, hint: 'action', run: () => setTheme(theme) })),
  ].filter(({ name, hint }) => has(name, hint));
  const defined = (workflows.data?.pages.flatMap((page) => page.workflows) ?? []).filter(({ dialect }) => dialect !== 'plan');
  const started = executions.data?.pages.flatMap((page) => page.executions) ?? [];
  const nameOf = useDefinitionName(started);
  const isShared = (name: string) => defined.filter((other) => other.name === name).length > 1;
  const kinds: Command[][] = [
    defined
      .filter(({ id, name }) => isCurrent(workflows) || has(name, id))
      .map((workflow) => go(workflow.name, `${workflow.dialect}${isShared(workflow.name) ? ` · ${shortId(workflow.id)}` : ''}`, definitionPath(workflow))),
    (plans.data?.items ?? []).filter((plan) => has(planTitle(plan), plan.id)).map((plan) => go(planTitle(plan), `plan · ${shortId(plan.id)}`, `/plans/${plan.id}`)),
    (schedules.data ?? []).filter(({ name, id }) => has(name, id)).map(({ name, id }) => go(name, 'schedule', `/schedules/${id}`)),
    (actions.data ?? []).filter(({ name }) => has(name)).map(({ name }) => go(name, 'registered action', `/actions/${encodeURIComponent(name)}`)),
    started
      .filter(({ workflowName, executionId }) => isCurrent(executions) || has(workflowName, executionId))
      .map(({ executionId, workflowName, dialect, status }) => go(`${nameOf({ name: workflowName, dialect })} ${shortId(executionId)}`, status, `/executions/${executionId}`)),
  ];
  const byId = EXECUTION_ID.test(words) ? [go(words, 'execution by id', `/executions/${words.startsWith('exec_') ? words : `exec_${words}`}`)] : [];
  const hasMore = words !== '' && (executions.hasNextPage || started.length > OF_KIND_MAX);
  const all = hasMore ? [go(`Executions with “${words}” in their name or id`, 'list', `/executions?text=${encodeURIComponent(words)}`)] : [];
  const commands = [...byId, ...fixed, ...kinds.flatMap((kind) => kind.slice(0, OF_KIND_MAX)), ...all];
  const sources = [workflows, executions, plans, schedules, actions];
  const isSearching = later !== words || sources.some(({ isPlaceholderData, isPending }) => isPlaceholderData || isPending);
  // An execution may be found by its id and by the server.
  return { commands: commands.filter(({ id }, index) => commands.findIndex((other) => other.id === id) === index), isSearching, error: sources.find(({ error }) => error)?.error };
}

/** Executions by name or id. A page of the server may have fewer entries than were asked for. */
function useFoundExecutions(text: string) {
  const found = useExecutions({ text: text || undefined }, EXECUTIONS);
  const { data, hasNextPage, isFetchingNextPage, isPlaceholderData, fetchNextPage } = found;
  const isShort = !isPlaceholderData && data !== undefined && data.pages.length < PAGES_MAX && data.pages.reduce((sum, { executions }) => sum + executions.length, 0) < OF_KIND_MAX;
  useEffect(() => {
    if (isShort && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [isShort, hasNextPage, isFetchingNextPage, fetchNextPage]);
  return found;
}
