// The source of a workflow next to the graph of what is typed. A change is saved as a new version.
import { type ReactNode, useState } from 'react';
import { api, type Graph, type Schemas, type Workflow } from '../../api/client';
import { useCan, useChange } from '../../api/shared';
import { useWorkflowGraph } from '../../api/workflows';
import { Loading, Problem, Section } from '../../parts/basics';
import { Copy } from '../../parts/Copy';
import { Unsaved, useDraft } from '../../parts/drafts';
import { type Check, LazyEditor } from '../../parts/LazyEditor';
import { LazyGraph } from '../../parts/LazyGraph';
import { Findings, hasError } from './Findings';

export function Source({ workflow }: { workflow: Workflow }) {
  const canEdit = useCan('edit');
  // A draft keeps the version that it began with: another user may save one meanwhile.
  const draft = useDraft(`workflow ${workflow.id}`, { source: workflow.source, version: workflow.version });
  const { base, text: source, isChanged } = draft;
  const [check, setCheck] = useState<Check>();
  const [valid, setValid] = useState<Graph>();
  const checked = (found: Check) => {
    setCheck(found);
    if (found.graph) setValid(found.graph);
  };
  const save = useChange(
    async (text: string) => ({ text, saved: await api.putText<Schemas['Registered']>(`/workflows/${workflow.id}`, text, { 'If-Match': `"${base.version}"` }) }),
    ({ text, saved }) => draft.saved({ version: saved.version, source: text }),
    (_, { saved }) => `Version ${saved.version} was saved.`,
  );
  const isStale = workflow.version > (base.version ?? 0);
  return (
    <>
      {isStale && (
        <div className="note">
          Version {workflow.version} was saved meanwhile.{' '}
          <button type="button" onClick={draft.load}>
            Load it
          </button>
        </div>
      )}
      <div className="columns editing">
        <Section
          title={`Source of version ${base.version}`}
          aside={
            <span className="row wrap">
              <Unsaved draft={draft} />
              <Copy text={source} label="Copy" />
              {canEdit && (
                <button type="button" className="good" disabled={!isChanged || save.isPending || hasError(check)} onClick={() => save.mutate(source)}>
                  Save as new version
                </button>
              )}
            </span>
          }
        >
          <LazyEditor key={draft.editor} label="Source" source={source} dialect={workflow.dialect} isReadOnly={!canEdit} change={draft.change} checked={checked} isDrawn />
          {canEdit && <Findings check={check} />}
          {save.error && <Problem error={save.error} />}
        </Section>
        {isChanged && valid ? (
          <Section title={check?.graph ? 'Graph of the edited text' : 'Graph of the last valid text'} aside={<Reason check={check} />}>
            <LazyGraph graph={valid} />
          </Section>
        ) : (
          <SavedGraph id={workflow.id} version={base.version ?? workflow.version} aside={isChanged && <Reason check={check} />} />
        )}
      </div>
    </>
  );
}

/** Why the graph is not that of the edited text. */
function Reason({ check }: { check: Check | undefined }) {
  if (check?.graph) return null;
  return <span className="faint">{check?.failure ? 'The edited text was not checked.' : hasError(check) ? 'The edited text has errors.' : 'The edited text is being checked …'}</span>;
}

function SavedGraph({ id, version, aside }: { id: string; version: number; aside: ReactNode }) {
  const graph = useWorkflowGraph(id, version);
  return (
    <Section title={`Graph of version ${version}`} aside={aside}>
      {graph.error && <Problem error={graph.error} retry={() => void graph.refetch()} />}
      {graph.data ? <LazyGraph graph={graph.data} /> : !graph.error && <Loading />}
    </Section>
  );
}
