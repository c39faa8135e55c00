// Starts a workflow: a form from its input schema, or JSON; and the same start as commands.
import { useLocation } from 'wouter';
import { api, type Execution, type Schemas, type Workflow } from '../../api/client';
import { useExecution, useValue } from '../../api/executions';
import { useChange } from '../../api/shared';
import { useAddress } from '../../parts/address';
import { Loading, Problem, Section } from '../../parts/basics';
import { Copy } from '../../parts/Copy';
import { tenant } from '../../api/client';
import { curl, quote } from '../../parts/commands';
import { inputSchema } from '../../parts/inputs';
import { useKept } from '../../parts/kept';
import { areShown, beginTexts, hasWrongText, Hidden, hiddenNames, Missing, missingFields, type Read, readTexts, SchemaForm, type Texts, type Values } from '../../parts/SchemaForm';
import { findMarks } from '../../parts/reference';
import { shortId } from '../../parts/words';

export function Start({ workflow }: { workflow: Workflow }) {
  const [query] = useAddress();
  const from = query.get('from') ?? undefined;
  return from ? <RunAgain key={from} workflow={workflow} from={from} /> : <StartForm workflow={workflow} />;
}

/** The form begins with the inputs and tags of an earlier execution. */
function RunAgain({ workflow, from }: { workflow: Workflow; from: string }) {
  const before = useExecution(from);
  if (before.error) return <Problem error={before.error} retry={() => void before.refetch()} />;
  if (!before.data) return <Loading />;
  return <RunAgainForm workflow={workflow} before={before.data} from={from} />;
}

function RunAgainForm({ workflow, before, from }: { workflow: Workflow; before: Execution; from: string }) {
  const inputs = useValue(before.inputs);
  if (inputs.error) return <Problem error={inputs.error} retry={() => void inputs.refetch()} />;
  if (inputs.data === undefined) return <Loading />;
  const missing = findMarks(inputs.data);
  if (missing.length > 0) {
    return (
      <Problem
        error={`The inputs of ${shortId(from)} cannot be used again here: ${missing.slice(0, MISSING_MAX).join(', ')} ${missing.length === 1 ? 'is a reference to a value' : 'are references to values'} that the answer of the server does not contain. Start the workflow with the values themselves.`}
      />
    );
  }
  return <StartForm workflow={workflow} given={inputs.data} tags={before.metadata.tags} from={from} />;
}

/** Maximum number of references that a message names. */
const MISSING_MAX = 5;

interface Typed {
  isForm: boolean;
  /** The values that the form begins with; none: the defaults. */
  given: Values | undefined;
  /** The texts of the fields that were edited. */
  texts: Texts;
  json: string;
  tags: string;
}

interface StartFormProps {
  workflow: Workflow;
  given?: Values;
  tags?: readonly string[];
  from?: string;
}

function StartForm({ workflow, given, tags = [], from }: StartFormProps) {
  const schema = inputSchema(workflow.dialect, workflow.definition);
  const { state: typed, isChanged, change, drop } = useKept<Typed>(`start ${workflow.id} ${from}`, () => ({
    isForm: schema !== undefined && areShown(schema, given ?? {}),
    given,
    texts: {},
    json: showJson(given ?? {}),
    tags: tags.join(', '),
  }));
  const [, navigate] = useLocation();
  const start = useChange(
    (body: object) => api.post<Schemas['Accepted']>(`/workflows/${workflow.id}/execute`, body),
    ({ executionId }) => {
      drop();
      navigate(`/executions/${executionId}`);
    },
    'The execution was started.',
  );
  const form = typed.isForm ? schema : undefined;
  const texts = { ...beginTexts(schema ?? {}, typed.given), ...typed.texts };
  const read = form ? readTexts(form, texts, typed.given) : readJson(typed.json);
  const isWrong = Object.keys(read.errors).length > 0;
  const list = typed.tags === tags.join(', ') ? tags : typed.tags.split(/[\s,]+/).filter(Boolean);
  const body = { inputs: read.values, ...(list.length > 0 && { options: { tags: list } }) };
  const swap = () => change(form ? { isForm: false, json: showJson(read.values) } : { isForm: true, given: read.values, texts: {} });
  return (
    <Section
      title={from ? `Run again as ${shortId(from)}, with other inputs` : 'Start'}
      aside={
        <span className="row">
          {isChanged && (
            <button type="button" className="quiet" onClick={drop}>
              reset
            </button>
          )}
          {schema && (
            <button type="button" className="quiet" onClick={swap} disabled={hasWrongText(read)} title={hasWrongText(read) ? 'A text that is not valid would be lost: correct it first.' : undefined}>
              {form ? 'edit as JSON' : 'edit as a form'}
            </button>
          )}
        </span>
      }
    >
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isWrong) start.mutate(body);
        }}
      >
        {form ? (
          <SchemaForm schema={form} texts={texts} errors={read.errors} change={(name, text) => change((before) => ({ texts: { ...before.texts, [name]: text } }))} />
        ) : (
          <div className="field">
            <label htmlFor="inputs">Inputs as JSON</label>
            <textarea id="inputs" rows={8} spellCheck={false} value={typed.json} onChange={(event) => change({ json: event.target.value })} aria-invalid={isWrong} aria-describedby="inputs-wrong" />
            {read.errors['inputs'] && <span id="inputs-wrong" className="bad-text">{read.errors['inputs']}</span>}
          </div>
        )}
        <div className="field">
          <label htmlFor="tags">Tags</label>
          <input id="tags" value={typed.tags} placeholder="nightly, test" onChange={(event) => change({ tags: event.target.value })} />
        </div>
        {form && <Hidden names={hiddenNames(form, texts, typed.given)} />}
        {form && <Missing names={missingFields(form, read)} />}
        <div className="row wrap">
          <button type="submit" className="good" disabled={isWrong || start.isPending}>
            Start
          </button>
          {list.length === 0 && !tenant.get() && <Copy text={commandLine(workflow.id, read.values)} label="Copy as a command" isOff={isWrong} />}
          <Copy text={curl(`/workflows/${workflow.id}/execute`, body)} label="Copy as curl" isOff={isWrong} />
          {(list.length > 0 || tenant.get()) && <span className="faint">The command has no option for {list.length > 0 ? 'tags' : 'another tenant'}; the request for curl has it.</span>}
        </div>
      </form>
      {start.error && <Problem error={start.error} />}
    </Section>
  );
}

const showJson = (values: Values): string => JSON.stringify(values, null, 2);

/** Several workflows may have one name. */
const commandLine = (id: string, inputs: object) => `windlass workflows run ${id} --inputs ${quote(JSON.stringify(inputs))}`;

function readJson(text: string): Read {
  try {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) return { values: value as Values, errors: {} };
    return { values: {}, errors: { inputs: 'The inputs are an object: {"name": "value"}' } };
  } catch (error) {
    return { values: {}, errors: { inputs: `This is not JSON: ${error instanceof Error ? error.message : String(error)}` } };
  }
}
