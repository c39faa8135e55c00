// One workflow: its graph, its source, its executions, and a form that starts it.
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { api, type Schemas, type Session } from '../api/client';
import { useChange, useExecutions, useWorkflow, useWorkflowGraph } from '../api/queries';
import { Copy, Empty, Loading, Problem, Section } from '../parts/basics';
import { ExecutionTable } from '../parts/ExecutionTable';
import { LazyGraph } from '../parts/LazyGraph';

export function Workflow({ id, can }: { id: string; can: Session['permissions'] }) {
  const found = useWorkflow(id);
  const graph = useWorkflowGraph(id, found.data?.version);
  if (!found.data) return found.error ? <Problem error={found.error} retry={() => void found.refetch()} /> : <Loading />;
  const workflow = found.data;
  return (
    <>
      <header className="row wrap">
        <h1>{workflow.name}</h1>
        <span className="faint">
          {String(workflow.dialect)} version {workflow.version} · {workflow.status}
        </span>
      </header>
      {can.includes('execute') && <Start id={id} name={workflow.name} />}
      <div className="columns">
        <Section title="Graph">
          {graph.error && <Problem error={graph.error} />}
          {graph.data && <LazyGraph graph={graph.data} />}
        </Section>
        <Section title="Source" aside={<Copy text={workflow.source} label="Copy" />}>
          <pre className="source" tabIndex={0}>
            {workflow.source}
          </pre>
        </Section>
      </div>
      <Recent id={id} />
    </>
  );
}

function Start({ id, name }: { id: string; name: string }) {
  const [, navigate] = useLocation();
  const [inputs, setInputs] = useState('{}');
  const start = useChange(
    (given: unknown) => api.post<Schemas['Accepted']>(`/workflows/${id}/execute`, { inputs: given }),
    ({ executionId }) => navigate(`/executions/${executionId}`),
  );
  const parsed = parse(inputs);
  return (
    <Section title="Start">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (parsed.value) start.mutate(parsed.value);
        }}
      >
        <label htmlFor="inputs">Inputs as JSON</label>
        <textarea id="inputs" className="mono" rows={3} value={inputs} onChange={(event) => setInputs(event.target.value)} aria-invalid={!parsed.value} />
        {parsed.error && <p className="bad-text">{parsed.error}</p>}
        <div className="row">
          <button type="submit" className="good" disabled={!parsed.value || start.isPending}>
            Start
          </button>
          <Copy text={`windlass run ${quote(name)} --inputs ${quote(inputs)}`} label="Copy as a command" />
        </div>
      </form>
      {start.error && <Problem error={start.error} />}
    </Section>
  );
}

const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

function parse(text: string): { value?: object; error?: string } {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === 'object' && !Array.isArray(value) ? { value } : { error: 'The inputs are an object: {"name": "value"}' };
  } catch (error) {
    return { error: `This is not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}

function Recent({ id }: { id: string }) {
  const found = useExecutions({ workflowId: id }, 20);
  const executions = found.data?.pages.flatMap((page) => page.executions) ?? [];
  return (
    <Section title="Executions" aside={<Link href={`/executions?workflow=${id}`}>all</Link>}>
      {executions.length > 0 ? <ExecutionTable executions={executions} /> : <Empty title="It has not run yet." />}
    </Section>
  );
}
