// All executions. The filters are in the address, so that a link to a list shows the same list.
import { useLocation, useSearch } from 'wouter';
import { type ExecutionFilter, useExecutions, useWorkflows } from '../api/queries';
import { Empty, Loading, Problem } from '../parts/basics';
import { ExecutionTable } from '../parts/ExecutionTable';

const STATUSES = ['queued', 'running', 'paused', 'completed', 'partial_success', 'failed', 'cancelled'];

export function Executions() {
  const search = new URLSearchParams(useSearch());
  const [, navigate] = useLocation();
  const value = (key: string) => search.get(key) ?? undefined;
  const filter: ExecutionFilter = {
    status: value('status'),
    workflowId: value('workflow'),
    tag: value('tag'),
    parentExecutionId: value('parent'),
    since: value('since'),
  };
  const found = useExecutions(filter);
  const workflows = useWorkflows();
  const set = (key: string, text: string) => {
    const next = new URLSearchParams(search);
    if (text) next.set(key, text);
    else next.delete(key);
    navigate(`/executions${next.size ? `?${next}` : ''}`, { replace: true });
  };
  const executions = found.data?.pages.flatMap((page) => page.executions) ?? [];
  return (
    <>
      <h1>Executions</h1>
      <form className="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Status
          <select value={filter.status ?? ''} onChange={(event) => set('status', event.target.value)}>
            <option value="">any</option>
            {STATUSES.map((status) => (
              <option key={status} value={status}>
                {status.replace('_', ' ')}
              </option>
            ))}
          </select>
        </label>
        <label>
          Workflow
          <select value={filter.workflowId ?? ''} onChange={(event) => set('workflow', event.target.value)}>
            <option value="">any</option>
            {workflows.data?.workflows.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          Tag
          <input type="search" value={filter.tag ?? ''} onChange={(event) => set('tag', event.target.value)} />
        </label>
        {filter.parentExecutionId && (
          <button type="button" onClick={() => set('parent', '')}>
            children of …{filter.parentExecutionId.slice(-8)} ✕
          </button>
        )}
      </form>
      {found.error && <Problem error={found.error} retry={() => void found.refetch()} />}
      {found.isPending && <Loading />}
      {executions.length > 0 && <ExecutionTable executions={executions} />}
      {found.data && executions.length === 0 && (
        <Empty title="No execution matches.">
          <p>
            Start one on the page of a workflow, or with <code>windlass run FILE</code>.
          </p>
        </Empty>
      )}
      {found.hasNextPage && (
        <button type="button" onClick={() => void found.fetchNextPage()} disabled={found.isFetchingNextPage}>
          Show more
        </button>
      )}
    </>
  );
}
