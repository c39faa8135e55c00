// A form made from a JSON Schema. A field that is left empty is left out.
import { type ChangeEvent, type ReactNode, useId } from 'react';
import { useSecrets } from '../api/administration';
import { useCan } from '../api/shared';
import { parseInput, type Schema, showInput, typeOf } from './inputs';
import { localTime } from './words';

export type Texts = Record<string, string>;

/** The texts that a form begins with: given values, or else the defaults. */
export function beginTexts(schema: Schema, given: Record<string, unknown> = {}): Texts {
  return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, inner]) => [name, showInput(given[name] ?? inner.default)]));
}

export interface Read {
  values: Record<string, unknown>;
  errors: Record<string, string>;
}

export function readTexts(schema: Schema, texts: Texts): Read {
  const read: Read = { values: {}, errors: {} };
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    const { value, error } = parseInput(inner, texts[name] ?? '');
    if (error) read.errors[name] = error;
    else if (value !== undefined) read.values[name] = value;
    else if (schema.required?.includes(name)) read.errors[name] = REQUIRED;
  }
  return read;
}

/** The required fields that are empty, by the names that the form shows. */
export const missingFields = (schema: Schema, { errors }: Read): string[] =>
  Object.entries(schema.properties ?? {}).flatMap(([name, { title }]) => (errors[name] === REQUIRED ? [title ?? name] : []));

const REQUIRED = 'is required';

/** Lists the fields that keep a form from being sent. */
export function Missing({ names }: { names: readonly string[] }) {
  if (names.length === 0) return null;
  return <p className="faint">Still required: {names.join(', ')}.</p>;
}

interface FormProps {
  schema: Schema;
  texts: Texts;
  errors: Record<string, string>;
  change: (texts: Texts) => void;
  /** Something at the end of each field. */
  aside?: (name: string) => ReactNode;
}

export function SchemaForm({ schema, texts, errors, change, aside }: FormProps) {
  return (
    <>
      {Object.entries(schema.properties ?? {}).map(([name, inner]) => (
        <Field
          key={name}
          name={name}
          schema={inner}
          isRequired={schema.required?.includes(name) ?? false}
          text={texts[name] ?? ''}
          error={errors[name]}
          change={(text) => change({ ...texts, [name]: text })}
          aside={aside?.(name)}
        />
      ))}
    </>
  );
}

interface FieldProps {
  name: string;
  schema: Schema;
  isRequired: boolean;
  text: string;
  error: string | undefined;
  change: (text: string) => void;
  aside: ReactNode;
}

function Field(props: FieldProps) {
  const { name, schema, isRequired, error, aside } = props;
  const id = useId();
  const wrong = error && error !== REQUIRED ? error : undefined;
  const described = [schema.description && `${id}-description`, wrong && `${id}-wrong`].filter(Boolean).join(' ') || undefined;
  return (
    <div className="field">
      <label htmlFor={id}>
        {schema.title ?? name}
        {isRequired && <span className="faint"> (required)</span>}
      </label>
      <Control {...props} attributes={{ id, 'aria-describedby': described, 'aria-invalid': wrong !== undefined, 'aria-required': isRequired }} />
      {schema.description && (
        <span id={`${id}-description`} className="faint">
          {schema.description}
        </span>
      )}
      {wrong && (
        <span id={`${id}-wrong`} className="bad-text">
          {name} {wrong}
        </span>
      )}
      {aside}
    </div>
  );
}

/** Attributes that connect a field with its label, its description and its error. */
interface Attributes {
  id: string;
  'aria-describedby': string | undefined;
  'aria-invalid': boolean;
  'aria-required': boolean;
}

interface InputProps {
  attributes: Attributes;
  text: string;
  change: (text: string) => void;
}

const INPUT_TYPES: Record<string, string> = { date: 'date', time: 'time', email: 'email', uri: 'url', password: 'password' };

function Control({ schema, text, change, attributes }: FieldProps & { attributes: Attributes }) {
  const type = typeOf(schema);
  const typed = (event: ChangeEvent<HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement>) => change(event.target.value);
  if (schema.format === 'secret') return <SecretName attributes={attributes} text={text} change={change} />;
  if (schema.format === 'binary' || schema.contentEncoding === 'base64') return <FileField attributes={attributes} change={change} />;
  if (schema.enum || type === 'boolean') {
    const values = schema.enum ?? [true, false];
    return (
      <select {...attributes} value={text} onChange={typed}>
        <option value="">–</option>
        {values.map((value) => (
          <option key={showInput(value)} value={showInput(value)}>
            {showInput(value)}
          </option>
        ))}
      </select>
    );
  }
  if (type === 'integer' || type === 'number')
    return <input {...attributes} type="number" step={type === 'integer' ? 1 : 'any'} min={schema.minimum} max={schema.maximum} value={text} onChange={typed} />;
  if (schema.format === 'date-time') return <DateTime attributes={attributes} text={text} change={change} />;
  if (type === 'string' && !text.includes('\n')) return <input {...attributes} type={INPUT_TYPES[schema.format ?? ''] ?? 'text'} value={text} onChange={typed} />;
  return <textarea {...attributes} rows={3} spellCheck={false} value={text} onChange={typed} />;
}

/** A local time, sent with its zone. */
function DateTime({ attributes, text, change }: InputProps) {
  return <input {...attributes} type="datetime-local" value={localTime(text)} onChange={(event) => change(event.target.value ? new Date(event.target.value).toISOString() : '')} />;
}

/** A secret is passed by its name; its value stays at the server. */
function SecretName({ attributes, text, change }: InputProps) {
  const canRead = useCan('edit');
  const secrets = useSecrets(canRead).data?.secrets ?? [];
  return (
    <>
      <input {...attributes} list={`${attributes.id}-names`} value={text} placeholder="name of a secret" onChange={(event) => change(event.target.value)} />
      <datalist id={`${attributes.id}-names`}>
        {secrets.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}

/** A file is sent as base64. */
function FileField({ attributes, change }: Omit<InputProps, 'text'>) {
  const read = async (file: File | undefined) => {
    const bytes = new Uint8Array((await file?.arrayBuffer()) ?? new ArrayBuffer(0));
    const chunks = Array.from({ length: Math.ceil(bytes.length / 8_192) }, (_, part) => String.fromCharCode(...bytes.subarray(part * 8_192, (part + 1) * 8_192)));
    change(btoa(chunks.join('')));
  };
  return <input {...attributes} type="file" onChange={(event) => void read(event.target.files?.[0])} />;
}
