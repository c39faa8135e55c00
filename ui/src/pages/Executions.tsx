// All executions. The filters are in the address, so that a link to a list shows the same list.
import { useState } from 'react';
import type { ListedExecution } from '../api/client';
import { type ExecutionFilter, PERIODS, sinceTime, useExecutions } from '../api/executions';
import { useCan } from '../api/shared';
import { useWorkflow, useWorkflows } from '../api/workflows';
import { useAddress, useLater } from '../parts/address';
import { Empty, More, Result, Title } from '../parts/basics';
import { Bulk, type BulkKind } from '../parts/Bulk';
import { useDefinitionName } from '../parts/definition';
import { ExecutionTable } from '../parts/ExecutionTable';
import { localTime, shortId, statusName } from '../parts/words';

const STATUSES = ['open', 'queued', 'initializing', 'running', 'paused', 'completed', 'partial_success', 'failed', 'cancelled'];
const DIALECTS = ['workflow', 'playbook', 'actions', 'plan'];
const TRIGGERS = ['manual', 'schedule', 'webhook', 'api', 'workflow'];

export function Executions() {
  const [query, change] = useAddress();
  const value = (key: string) => query.get(key) || undefined;
  const filter: ExecutionFilter = {
    status: value('status'),
    workflowId: value('workflow'),
    tag: value('tag'),
    correlationId: value('correlation'),
    parentExecutionId: value('parent'),
    since: value('since'),
    until: value('until'),
    dialect: value('dialect'),
    trigger: value('trigger'),
    text: useLater(value('text')),
  };
  const found = useExecutions(filter);
  // Whole rows are kept: one that leaves the list stays selected.
  const [chosen, setChosen] = useState<ReadonlyMap<string, ListedExecution>>(new Map());
  const [bulk, setBulk] = useState<BulkKind>();
  const canRun = useCan('execute');
  const executions = found.data?.pages.flatMap((page) => page.executions) ?? [];
  const toggle = (execution: ListedExecution) => {
    const next = new Map(chosen);
    if (!next.delete(execution.executionId)) next.set(execution.executionId, execution);
    setChosen(next);
  };
  // Of a row that is still listed, the newest state counts.
  const selected = [...chosen.values()].map((one) => executions.find(({ executionId }) => executionId === one.executionId) ?? one);
  const scope = chosen.size > 0 ? `${chosen.size} selected` : 'all of this list';
  return (
    <>
      <Title
        title="Executions"
        actions={
          canRun && (
            <>
              {chosen.size > 0 && (
                <button type="button" className="quiet" onClick={() => setChosen(new Map())}>
                  clear selection
                </button>
              )}
              <button type="button" className={chosen.size > 0 ? 'bad' : 'quiet'} onClick={() => setBulk('cancel')}>
                Cancel {scope} …
              </button>
              <button type="button" className={chosen.size > 0 ? undefined : 'quiet'} onClick={() => setBulk('retry')}>
                Retry {scope} …
              </button>
            </>
          )
        }
      />
      <Filters query={query} change={change} />
      <Result of={found}>
        {executions.length > 0 ? <ExecutionTable executions={executions} selection={canRun ? { chosen, toggle } : undefined} /> : <NoExecution isFiltered={query.size > 0} />}
      </Result>
      {found.hasNextPage && executions.length === 0 && <p className="faint">None of those that were looked at so far matches; older ones may.</p>}
      <More of={found} />
      {bulk && <Bulk kind={bulk} filter={filter} chosen={chosen.size > 0 ? selected : undefined} close={() => setBulk(undefined)} />}
    </>
  );
}

function NoExecution({ isFiltered }: { isFiltered: boolean }) {
  return (
    <Empty title="No execution matches.">
      {isFiltered ? (
        <p>Change or clear the filters above.</p>
      ) : (
        <p>
          Start one on the page of a workflow, or with <code>windlass run FILE</code>.
        </p>
      )}
    </Empty>
  );
}

interface FilterProps {
  query: URLSearchParams;
  change: (changes: Record<string, string | undefined>) => void;
}

const OTHER = 'other';

/** The time of creation: a period until now, or one with a beginning and an end. */
function Created({ query, change }: FilterProps) {
  const since = query.get('since') ?? '';
  const until = query.get('until') ?? '';
  const isOther = until !== '' || (since !== '' && !PERIODS[since]);
  const choose = (chosen: string) => change({ since: chosen === OTHER ? sinceTime('1d') : chosen, until: undefined });
  const time = (label: string, key: 'since' | 'until', value: string) => (
    <label>
      {label}
      <input type="datetime-local" value={value && localTime(value)} onChange={(event) => change({ [key]: event.target.value && new Date(event.target.value).toISOString() })} />
    </label>
  );
  return (
    <>
      <label>
        Created
        <select value={isOther ? OTHER : since} onChange={(event) => choose(event.target.value)}>
          <option value="">any</option>
          {Object.entries(PERIODS).map(([key, [name]]) => (
            <option key={key} value={key}>
              {name}
            </option>
          ))}
          <option value={OTHER}>between …</option>
        </select>
      </label>
      {isOther && time('from', 'since', sinceTime(since) ?? '')}
      {isOther && time('to', 'until', until)}
    </>
  );
}

function Filters({ query, change }: FilterProps) {
  const { data } = useWorkflows();
  const workflows = data?.pages.flatMap((page) => page.workflows) ?? [];
  const chosen = query.get('workflow') ?? '';
  const isListed = chosen === '' || workflows.some(({ id }) => id === chosen);
  // The list has the first workflows only.
  const other = useWorkflow(chosen, data !== undefined && !isListed).data;
  const nameOf = useDefinitionName(other ? [...workflows, other] : workflows);
  const named = workflows.map((workflow) => [workflow.id, nameOf(workflow)] as const);
  const select = (label: string, key: string, options: readonly (readonly [string, string])[]) => (
    <label>
      {label}
      <select value={query.get(key) ?? ''} onChange={(event) => change({ [key]: event.target.value })}>
        <option value="">any</option>
        {options.map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
  const parent = query.get('parent');
  const correlation = query.get('correlation');
  return (
    <form className="filters" onSubmit={(event) => event.preventDefault()}>
      <input type="search" aria-label="Search executions" placeholder="Name or id" size={16} value={query.get('text') ?? ''} onChange={(event) => change({ text: event.target.value })} />
      {select('Status', 'status', STATUSES.map((status) => [status, statusName(status)]))}
      {select('Workflow', 'workflow', isListed ? named : [...named, [chosen, other ? nameOf(other) : chosen]])}
      <Created query={query} change={change} />
      {select('Dialect', 'dialect', DIALECTS.map((name) => [name, name]))}
      {select('Trigger', 'trigger', TRIGGERS.map((name) => [name, name]))}
      <label>
        Tag
        <input type="search" size={10} value={query.get('tag') ?? ''} onChange={(event) => change({ tag: event.target.value })} />
      </label>
      {parent && (
        <button type="button" onClick={() => change({ parent: undefined })}>
          children of {shortId(parent)} ✕
        </button>
      )}
      {correlation && (
        <button type="button" onClick={() => change({ correlation: undefined })}>
          correlation {correlation} ✕
        </button>
      )}
      {query.size > 0 && (
        <button type="button" className="quiet" onClick={() => change(Object.fromEntries([...query.keys()].map((key) => [key, undefined])))}>
          clear filters
        </button>
      )}
    </form>
  );
}
