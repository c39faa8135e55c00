// Starts a workflow: a form from its input schema, or JSON; and the same start as commands.
import { useState } from 'react';
import { useLocation } from 'wouter';
import { api, type Schemas, type Workflow } from '../../api/client';
import { useExecution } from '../../api/executions';
import { useChange } from '../../api/shared';
import { useAddress } from '../../parts/address';
import { Loading, Problem, Section } from '../../parts/basics';
import { Copy } from '../../parts/Copy';
import { tenant } from '../../api/client';
import { curl, quote } from '../../parts/commands';
import { inputSchema } from '../../parts/inputs';
import { beginTexts, Missing, missingFields, readTexts, SchemaForm } from '../../parts/SchemaForm';
import { shortId } from '../../parts/words';

export function Start({ workflow }: { workflow: Workflow }) {
  const [query] = useAddress();
  const from = query.get('from') ?? undefined;
  return from ? <RunAgain key={from} workflow={workflow} from={from} /> : <StartForm workflow={workflow} />;
}

/** The form begins with the inputs of an earlier execution. */
function RunAgain({ workflow, from }: { workflow: Workflow; from: string }) {
  const before = useExecution(from);
  if (before.error) return <Problem error={before.error} retry={() => void before.refetch()} />;
  if (!before.data) return <Loading />;
  return <StartForm workflow={workflow} given={before.data.inputs} from={from} />;
}

function StartForm({ workflow, given, from }: { workflow: Workflow; given?: Record<string, unknown>; from?: string }) {
  const schema = inputSchema(workflow.dialect, workflow.definition);
  const [texts, setTexts] = useState(() => beginTexts(schema ?? {}, given));
  const [json, setJson] = useState(() => JSON.stringify(given ?? {}, null, 2));
  const [isForm, setForm] = useState(schema !== undefined);
  const [tags, setTags] = useState('');
  const [, navigate] = useLocation();
  const start = useChange(
    (body: object) => api.post<Schemas['Accepted']>(`/workflows/${workflow.id}/execute`, body),
    ({ executionId }) => navigate(`/executions/${executionId}`),
    'The execution was started.',
  );
  const read = isForm && schema ? readTexts(schema, texts) : readJson(json);
  const isWrong = Object.keys(read.errors).length > 0;
  const list = tags.split(/[\s,]+/).filter(Boolean);
  const body = { inputs: read.values, ...(list.length > 0 && { options: { tags: list } }) };
  const swap = () => {
    if (isForm) setJson(JSON.stringify(read.values, null, 2));
    else if (schema) setTexts(beginTexts(schema, read.values));
    setForm(!isForm);
  };
  return (
    <Section
      title={from ? `Run again as ${shortId(from)}, with other inputs` : 'Start'}
      aside={
        schema && (
          <button type="button" className="quiet" onClick={swap}>
            {isForm ? 'edit as JSON' : 'edit as a form'}
          </button>
        )
      }
    >
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isWrong) start.mutate(body);
        }}
      >
        {isForm && schema ? (
          <SchemaForm schema={schema} texts={texts} errors={read.errors} change={setTexts} />
        ) : (
          <div className="field">
            <label htmlFor="inputs">Inputs as JSON</label>
            <textarea id="inputs" rows={8} spellCheck={false} value={json} onChange={(event) => setJson(event.target.value)} aria-invalid={isWrong} aria-describedby="inputs-wrong" />
            {read.errors['inputs'] && <span id="inputs-wrong" className="bad-text">{read.errors['inputs']}</span>}
          </div>
        )}
        <div className="field">
          <label htmlFor="tags">Tags</label>
          <input id="tags" value={tags} placeholder="nightly, test" onChange={(event) => setTags(event.target.value)} />
        </div>
        {isForm && schema && <Missing names={missingFields(schema, read)} />}
        <div className="row wrap">
          <button type="submit" className="good" disabled={isWrong || start.isPending}>
            Start
          </button>
          {list.length === 0 && !tenant.get() && <Copy text={commandLine(workflow.name, read.values)} label="Copy as a command" />}
          <Copy text={curl(`/workflows/${workflow.id}/execute`, body)} label="Copy as curl" />
          {(list.length > 0 || tenant.get()) && <span className="faint">The command has no option for {list.length > 0 ? 'tags' : 'another tenant'}; the request for curl has it.</span>}
        </div>
      </form>
      {start.error && <Problem error={start.error} />}
    </Section>
  );
}

const commandLine = (name: string, inputs: object) => `windlass workflows run ${quote(name)} --inputs ${quote(JSON.stringify(inputs))}`;

function readJson(text: string): { values: Record<string, unknown>; errors: Record<string, string> } {
  try {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) return { values: value as Record<string, unknown>, errors: {} };
    return { values: {}, errors: { inputs: 'The inputs are an object: {"name": "value"}' } };
  } catch (error) {
    return { values: {}, errors: { inputs: `This is not JSON: ${error instanceof Error ? error.message : String(error)}` } };
  }
}
