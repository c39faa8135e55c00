// The source of a workflow beside its graph. A change is saved as a new version.
import { useState } from 'react';
import { api, type Schemas, type Workflow } from '../../api/client';
import { useCan, useChange } from '../../api/shared';
import { useWorkflowGraph } from '../../api/workflows';
import type { Finding } from '../../editor/Editor';
import { Copy, Problem, Section } from '../../parts/basics';
import { LazyEditor } from '../../parts/LazyEditor';
import { LazyGraph } from '../../parts/LazyGraph';
import { Findings } from './Findings';

export function Source({ workflow }: { workflow: Workflow }) {
  const canEdit = useCan('edit');
  const graph = useWorkflowGraph(workflow.id, workflow.version);
  // The version that the text began with: another user may save one meanwhile.
  const [base, setBase] = useState(workflow);
  const [source, setSource] = useState(workflow.source);
  const [findings, setFindings] = useState<Finding[]>([]);
  const save = useChange(
    () => api.putText<Schemas['Registered']>(`/workflows/${workflow.id}`, source, { 'If-Match': `"${base.version}"` }),
    ({ version }) => setBase({ ...workflow, version, source }),
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
                <button type="button" className="good" disabled={!isChanged || save.isPending || findings.some(({ severity }) => severity === 'error')} onClick={() => save.mutate(undefined)}>
                  Save as new version
                </button>
              )}
            </span>
          }
        >
          <LazyEditor key={base.version} label="Source" source={source} dialect={workflow.dialect} isReadOnly={!canEdit} change={setSource} found={setFindings} />
          <Findings findings={findings} />
          {save.error && <Problem error={save.error} />}
        </Section>
        <Section title="Graph">{graph.data && <LazyGraph graph={graph.data} />}</Section>
      </div>
    </>
  );
}
