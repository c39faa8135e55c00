// A new workflow, from a small example of a dialect.
import { useState } from 'react';
import { useLocation } from 'wouter';
import { api, type Schemas } from '../../api/client';
import { useChange } from '../../api/shared';
import { Problem, Section, Title } from '../../parts/basics';
import { Unsaved, useDraft } from '../../parts/drafts';
import { type Check, LazyEditor } from '../../parts/LazyEditor';
import { Findings, hasError } from './Findings';

const EXAMPLES: Record<string, string> = {
  workflow: `name: hello
nodes:
  - id: start
    type: trigger
    config:
      manualConfig:
        inputPayload:
          type: object
          properties:
            name: {type: string, default: sailor}
  - id: greet
    type: shell
    config: {command: "echo hello {{ inputs.name }}"}
edges:
  - {source: start, target: greet}
`,
  playbook: `apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: hello
workload:
  name: sailor
workflow:
  - step: greet
    tool:
      kind: shell
      command: echo "hello {{ workload.name }}"
`,
  actions: `schemaVersion: 1
workflowId: hello
name: hello
inputs:
  type: object
  properties:
    name: {type: string, default: sailor}
actions:
  - actionId: greet
    order: 1
    operation: greeting:write
    input: {name: "{{ inputs.name }}"}
adapters:
  operations:
    "greeting:write": {kind: shell, command: 'echo hello {{ args.name }}'}
`,
};

/** The example that was looked at last. */
const SHOWN = 'windlass.example';

export function NewWorkflow() {
  const [dialect, setDialect] = useState(() => sessionStorage.getItem(SHOWN) ?? 'workflow');
  const choose = (name: string) => {
    sessionStorage.setItem(SHOWN, name);
    setDialect(name);
  };
  return (
    <>
      <Title title="New workflow" />
      <Example key={dialect} dialect={dialect} choose={choose} />
    </>
  );
}

/** The example of a dialect in an editor. Each dialect has a draft of its own, so that the choice of another example loses nothing. */
function Example({ dialect, choose }: { dialect: string; choose: (dialect: string) => void }) {
  const draft = useDraft(`new ${dialect}`, { source: EXAMPLES[dialect] ?? '' });
  const [check, setCheck] = useState<Check>();
  const [, navigate] = useLocation();
  const create = useChange(
    () => api.postText<Schemas['Registered']>('/workflows', draft.text),
    ({ id }) => {
      draft.drop();
      navigate(`/workflows/${id}`);
    },
  );
  return (
    <Section
      title="Source"
      aside={
        <span className="row wrap">
          <Unsaved draft={draft} />
          <label className="row">
            Example
            <select value={dialect} onChange={(event) => choose(event.target.value)}>
              {Object.keys(EXAMPLES).map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
          <button type="button" className="good" disabled={create.isPending || hasError(check)} onClick={() => create.mutate(undefined)}>
            Create
          </button>
        </span>
      }
    >
      <LazyEditor key={draft.editor} label="Source" source={draft.text} dialect={dialect} change={draft.change} checked={setCheck} />
      <Findings check={check} />
      {create.error && <Problem error={create.error} />}
    </Section>
  );
}
