// The source of a workflow next to its graph. A change is saved as a new version.
import { useState } from 'react';
import { api, type Schemas, type Workflow } from '../../api/client';
import { useCan, useChange } from '../../api/shared';
import { useWorkflowGraph } from '../../api/workflows';
import { Loading, Problem, Section } from '../../parts/basics';
import { Copy } from '../../parts/Copy';
import { type Check, LazyEditor } from '../../parts/LazyEditor';
import { LazyGraph } from '../../parts/LazyGraph';
import { Findings, hasError } from './Findings';

export function Source({ workflow }: { workflow: Workflow }) {
  const canEdit = useCan('edit');
  const graph = useWorkflowGraph(workflow.id, workflow.version);
  // The version that the text began with: another user may save one meanwhile.
  const [base, setBase] = useState(workflow);
  const [source, setSource] = useState(workflow.source);
  // The editor owns its text: only a text that is loaded is a new editor.
  const [loaded, setLoaded] = useState(workflow.version);
  const [check, setCheck] = useState<Check>();
  const save = useChange(
    async (text: string) => ({ text, saved: await api.putText<Schemas['Registered']>(`/workflows/${workflow.id}`, text, { 'If-Match': `"${base.version}"` }) }),
    // Text that was typed meanwhile is not saved.
    ({ text, saved }) => setBase({ ...workflow, version: saved.version, source: text }),
    (_, { saved }) => `Version ${saved.version} was saved.`,
  );
  const isChanged = source !== base.source;
  const isStale = workflow.version > base.version;
  return (
    <>
      {isStale && (
        <div className="note">
          Version {workflow.version} was saved meanwhile.{' '}
          <button
            type="button"
            onClick={() => {
              setBase(workflow);
              setSource(workflow.source);
              setLoaded(workflow.version);
            }}
          >
            Load it
          </button>
        </div>
      )}
      <div className="columns editing">
        <Section
          title={`Source of version ${base.version}`}
          aside={
            <span className="row">
              <Copy text={source} label="Copy" />
              {canEdit && (
                <button type="button" className="good" disabled={!isChanged || save.isPending || hasError(check)} onClick={() => save.mutate(source)}>
                  Save as new version
                </button>
              )}
            </span>
          }
        >
          <LazyEditor key={loaded} label="Source" source={source} dialect={workflow.dialect} isReadOnly={!canEdit} change={setSource} checked={setCheck} />
          {canEdit && <Findings check={check} />}
          {save.error && <Problem error={save.error} />}
        </Section>
        <Section title="Graph">
          {graph.error && <Problem error={graph.error} retry={() => void graph.refetch()} />}
          {graph.data ? <LazyGraph graph={graph.data} /> : !graph.error && <Loading />}
        </Section>
      </div>
    </>
  );
}
