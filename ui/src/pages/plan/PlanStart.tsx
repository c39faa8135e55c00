// Starts a plan: a form from the schemas of its parameters, and the same start as commands.
import type { ReactNode } from 'react';
import { useLocation } from 'wouter';
import { useRunnerGroups } from '../../api/administration';
import { api, type Schemas, tenant } from '../../api/client';
import { type Plan, type PlanField, useClusters, usePlanExecution } from '../../api/plans';
import { useChange } from '../../api/shared';
import { useAddress } from '../../parts/address';
import { Loading, Problem, Section } from '../../parts/basics';
import { Copy } from '../../parts/Copy';
import { curl, quote } from '../../parts/commands';
import { type Schema, showInput } from '../../parts/inputs';
import { useKept } from '../../parts/kept';
import { beginTexts, Hidden, hiddenNames, Missing, missingFields, readTexts, SchemaForm, type Texts } from '../../parts/SchemaForm';
import { shortId } from '../../parts/words';

type Spec = Schemas['PlanExecutionSpec'];

export function PlanStart({ plan }: { plan: Plan }) {
  const [query] = useAddress();
  const from = query.get('from') ?? undefined;
  return from ? <RunAgain key={from} plan={plan} from={from} /> : <StartForm plan={plan} />;
}

/** The form begins with the parameters of an earlier execution. */
function RunAgain({ plan, from }: { plan: Plan; from: string }) {
  const before = usePlanExecution(from);
  if (before.error) return <Problem error={before.error} retry={() => void before.refetch()} />;
  if (!before.data) return <Loading />;
  return <StartForm plan={plan} given={before.data.spec} from={from} />;
}

interface Typed {
  /** Parameters that are the names of secrets. */
  secrets: ReadonlySet<string>;
  /** The texts of the fields that were edited. */
  texts: Texts;
  cluster: string | undefined;
  runner: string | undefined;
}

function StartForm({ plan, given, from }: { plan: Plan; given?: Spec; from?: string }) {
  const fields = plan.spec.params ?? [];
  const values = given && { ...(given.params as object | undefined), ...given.secrets };
  const { state: typed, isChanged, change, drop } = useKept<Typed>(`start ${plan.id} ${from}`, () => ({
    secrets: new Set(Object.keys(given?.secrets ?? {})),
    texts: {},
    cluster: given?.cluster ?? undefined,
    runner: given?.runner ?? undefined,
  }));
  const { secrets } = typed;
  const schema = schemaOf(fields, secrets);
  const texts = { ...beginTexts(schema, values), ...typed.texts };
  const [foundGroups, foundClusters] = [useRunnerGroups(), useClusters()];
  const groups = foundGroups.data?.groups;
  const clusters = foundClusters.data?.items;
  const runner = plan.spec.runner ? undefined : (typed.runner ?? only(groups));
  const cluster = plan.spec.cluster ? undefined : (typed.cluster ?? groups?.find(({ name }) => name === runner)?.cluster ?? only(clusters));
  const [, navigate] = useLocation();
  const start = useChange(
    (spec: Spec) => api.post<Schemas['PlanExecution']>('/plan-executions', { spec }),
    ({ id }) => {
      drop();
      navigate(`/executions/${id}/plan`);
    },
    'The execution was started.',
  );
  const read = readTexts(schema, texts, values);
  const isWrong = Object.keys(read.errors).length > 0 || (!plan.spec.runner && !runner) || (!plan.spec.cluster && !cluster);
  const spec = specOf(plan, read.values, secrets, { cluster, runner });
  const toggle = (name: string) => {
    change({
      secrets: new Set(secrets.has(name) ? [...secrets].filter((other) => other !== name) : [...secrets, name]),
      texts: { ...typed.texts, [name]: secrets.has(name) ? showInput(fields.find((field) => field.name === name)?.default) : '' },
    });
  };
  return (
    <Section
      title={from ? `Run again as ${shortId(from)}, with other parameters` : 'Start'}
      aside={
        isChanged && (
          <button type="button" className="quiet" onClick={drop}>
            reset
          </button>
        )
      }
    >
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isWrong) start.mutate(spec);
        }}
      >
        {fields.length === 0 && <p className="faint">It has no parameters.</p>}
        <SchemaForm schema={schema} texts={texts} errors={read.errors} change={(name, text) => change((before) => ({ texts: { ...before.texts, [name]: text } }))} aside={(name) => <AsSecret name={name} isOn={secrets.has(name)} toggle={() => toggle(name)} />} />
        <Choice name="Cluster" fixed={plan.spec.cluster && Object.entries(plan.spec.cluster).flat().join(': ')} value={cluster} options={clusters} change={(cluster) => change({ cluster })}>
          {foundClusters.error && <Problem error={foundClusters.error} retry={() => void foundClusters.refetch()} />}
        </Choice>
        <Choice name="Runner group" fixed={plan.spec.runner} value={runner} options={groups} change={(runner) => change({ runner })}>
          {foundGroups.error && <Problem error={foundGroups.error} retry={() => void foundGroups.refetch()} />}
          {groups?.length === 0 && (
            <span className="faint">
              There is no group of workers. Start a worker: <code>windlass worker --server {window.location.origin} --group NAME --cluster local</code>
            </span>
          )}
        </Choice>
        <Hidden names={hiddenNames(schema, texts, values)} />
        <Missing names={[...missingFields(schema, read), ...(plan.spec.cluster || cluster ? [] : ['Cluster']), ...(plan.spec.runner || runner ? [] : ['Runner group'])]} />
        <div className="row wrap">
          <button type="submit" className="good" disabled={isWrong || start.isPending}>
            Start
          </button>
          {!tenant.get() && <Copy text={commandLine(plan, spec)} label="Copy as a command" isOff={isWrong} />}
          <Copy text={curl('/plan-executions', { spec })} label="Copy as curl" isOff={isWrong} />
          {tenant.get() && <span className="faint">The command has no option for another tenant; the request for curl has it.</span>}
        </div>
      </form>
      {start.error && <Problem error={start.error} />}
    </Section>
  );
}

/** The only entry of a list is chosen without being asked for. */
const only = (list: readonly { name: string }[] | undefined) => (list?.length === 1 ? list[0]?.name : undefined);

/** A parameter without a schema is text; one that is bound to a secret has the name of the secret. */
function schemaOf(fields: readonly PlanField[], secrets: ReadonlySet<string>): Schema {
  const property = ({ name, schema, default: value, metadata }: PlanField): Schema => {
    const title = metadata?.['displayName'] ?? name;
    if (secrets.has(name)) return { type: 'string', format: 'secret', title };
    return { ...(schema ?? { type: 'string' }), title, ...(value !== undefined && { default: value }) };
  };
  return {
    type: 'object',
    properties: Object.fromEntries(fields.map((field) => [field.name, property(field)])),
    required: fields.filter((field) => secrets.has(field.name) || (field.required && field.default === undefined)).map(({ name }) => name),
  };
}

/** Values that are the defaults are left out, so that the execution shows them as defaults. */
function specOf(plan: Plan, values: Record<string, unknown>, secrets: ReadonlySet<string>, place: { cluster: string | undefined; runner: string | undefined }): Spec {
  const isDefault = (name: string, value: unknown) => JSON.stringify(plan.spec.params?.find((field) => field.name === name)?.default) === JSON.stringify(value);
  const entries = Object.entries(values);
  const params = entries.filter(([name, value]) => !secrets.has(name) && !isDefault(name, value));
  const named = entries.filter(([name]) => secrets.has(name)).map(([name, value]) => [name, String(value)] as const);
  return {
    planID: plan.id,
    ...(place.cluster && { cluster: place.cluster }),
    ...(place.runner && { runner: place.runner }),
    ...(params.length > 0 && { params: Object.fromEntries(params) }),
    ...(named.length > 0 && { secrets: Object.fromEntries(named) }),
  } as Spec;
}

function commandLine(plan: Plan, { params, secrets, cluster, runner }: Spec): string {
  const isText = (name: string) => (plan.spec.params?.find((field) => field.name === name)?.schema ?? { type: 'string' }).type === 'string';
  const words = [
    ...Object.entries(params ?? {}).map(([name, value]) => `--param ${quote(`${name}=${isText(name) ? value : JSON.stringify(value)}`)}`),
    ...Object.entries(secrets ?? {}).map(([name, secret]) => `--param-secret ${quote(`${name}=${secret}`)}`),
    ...(cluster ? [`--cluster ${quote(cluster)}`] : []),
    ...(runner ? [`--runner ${quote(runner)}`] : []),
  ];
  return ['windlass plans run', plan.id, ...words].join(' ');
}

function AsSecret({ name, isOn, toggle }: { name: string; isOn: boolean; toggle: () => void }) {
  return (
    <label className="row faint plain">
      <input type="checkbox" aria-label={`${name} is a secret`} checked={isOn} onChange={toggle} /> use a stored secret
    </label>
  );
}

interface ChoiceProps {
  name: string;
  fixed: string | undefined;
  value: string | undefined;
  options: readonly { name: string }[] | undefined;
  change: (value: string | undefined) => void;
  children?: ReactNode;
}

/** Where the execution runs, unless the plan determines it. */
function Choice({ name, fixed, value, options, change, children }: ChoiceProps) {
  if (fixed)
    return (
      <div className="field">
        <span className="label">{name}</span>
        <span className="faint">
          determined by the plan: <code>{fixed}</code>
        </span>
      </div>
    );
  return (
    <div className="field">
      <label htmlFor={name}>
        {name}
        <span className="faint"> (required)</span>
      </label>
      <select id={name} value={value ?? ''} onChange={(event) => change(event.target.value || undefined)}>
        <option value="">–</option>
        {options?.map((option) => (
          <option key={option.name}>{option.name}</option>
        ))}
      </select>
      {children}
    </div>
  );
}
