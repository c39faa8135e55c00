// A form made from a JSON Schema. A field that is left empty is left out. Of given values, those that are not edited are sent as they were.
import { type ChangeEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { useSecrets } from '../api/administration';
import { useCan } from '../api/shared';
import { Problem } from './basics';
import { fieldText, hintOf, isShown, parseInput, type Schema, showInput, typeOf } from './inputs';
import { bytes, localTime } from './words';

export type Texts = Record<string, string>;

export type Values = Record<string, unknown>;

const fieldsOf = ({ properties = {} }: Schema): [string, Schema][] => Object.entries(properties);

const beginText = (name: string, schema: Schema, given: Values): string => fieldText(schema, Object.hasOwn(given, name) ? given[name] : schema.default);

/** The texts that a form begins with: given values, or else the defaults. */
export function beginTexts(schema: Schema, given: Values = {}): Texts {
  return Object.fromEntries(fieldsOf(schema).map(([name, inner]) => [name, beginText(name, inner, given)]));
}

/** Whether the fields of a form show the given values as they are. */
export const areShown = (schema: Schema, given: Values): boolean => fieldsOf(schema).every(([name, inner]) => !Object.hasOwn(given, name) || isShown(inner, given[name]));

/** The given values that are sent and that no field shows. */
export function hiddenNames(schema: Schema, texts: Texts, given: Values = {}): string[] {
  const { properties = {} } = schema;
  return Object.keys(given).filter((name) => {
    const inner = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return !inner || (texts[name] === beginText(name, inner, given) && !isShown(inner, given[name]));
  });
}

export interface Read {
  values: Values;
  errors: Record<string, string>;
}

/** Reads the fields of a form. Given values without a field are kept, and so are those whose text was not changed; a default that was not given stays
 * with the server. */
export function readTexts(schema: Schema, texts: Texts, given?: Values): Read {
  const { properties = {} } = schema;
  const read: Read = { values: Object.fromEntries(Object.entries(given ?? {}).filter(([name]) => !Object.hasOwn(properties, name))), errors: {} };
  for (const [name, inner] of fieldsOf(schema)) {
    const text = texts[name] ?? '';
    if (given && text === beginText(name, inner, given)) {
      if (Object.hasOwn(given, name)) read.values[name] = given[name];
      if (Object.hasOwn(given, name) || inner.default !== undefined) continue;
    }
    const { value, error } = parseInput(inner, text);
    if (error) read.errors[name] = error;
    else if (value !== undefined) read.values[name] = value;
    else if (schema.required?.includes(name)) read.errors[name] = REQUIRED;
  }
  return read;
}

/** The required fields that are empty, by the names that the form shows. */
export const missingFields = (schema: Schema, { errors }: Read): string[] => fieldsOf(schema).flatMap(([name, { title }]) => (errors[name] === REQUIRED ? [title ?? name] : []));

/** Whether a field has a text that is not one of its values. */
export const hasWrongText = ({ errors }: Read): boolean => Object.values(errors).some((error) => error !== REQUIRED);

const REQUIRED = 'is required';

/** Lists the fields that keep a form from being sent. */
export function Missing({ names }: { names: readonly string[] }) {
  if (names.length === 0) return null;
  return <p className="faint">Still required: {names.join(', ')}.</p>;
}

/** Lists the values that are sent although no field shows them. */
export function Hidden({ names }: { names: readonly string[] }) {
  if (names.length === 0) return null;
  return <p className="faint">Also sent, as before: {names.join(', ')}.</p>;
}

interface FormProps {
  schema: Schema;
  texts: Texts;
  errors: Record<string, string>;
  change: (name: string, text: string) => void;
  /** Something at the end of each field. */
  aside?: (name: string) => ReactNode;
}

export function SchemaForm({ schema, texts, errors, change, aside }: FormProps) {
  return (
    <>
      {fieldsOf(schema).map(([name, inner]) => (
        <Field
          key={name}
          name={name}
          schema={inner}
          isRequired={schema.required?.includes(name) ?? false}
          text={texts[name] ?? ''}
          error={errors[name]}
          change={(text) => change(name, text)}
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
  const hint = hintOf(schema);
  const described = [schema.description && `${id}-description`, hint && !wrong && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(' ') || undefined;
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
      {hint && !wrong && (
        <span id={`${id}-hint`} className="faint">
          {hint}
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
  if (schema.format === 'binary' || schema.contentEncoding === 'base64') return <FileField attributes={attributes} text={text} change={change} />;
  if (schema.enum || type === 'boolean') {
    const values = (schema.enum ?? [true, false]).map(showInput);
    return (
      <select {...attributes} value={text} onChange={typed}>
        <option value="">–</option>
        {(text && !values.includes(text) ? [...values, text] : values).map((value) => (
          <option key={value} value={value}>
            {value}
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
  const found = useSecrets(canRead);
  const secrets = found.data?.secrets ?? [];
  return (
    <>
      <input {...attributes} list={`${attributes.id}-names`} value={text} placeholder="name of a secret" onChange={(event) => change(event.target.value)} />
      <datalist id={`${attributes.id}-names`}>
        {secrets.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {found.error && (
        <>
          <span className="bad-text">The names of secrets could not be read.</span>
          <Problem error={found.error} retry={() => void found.refetch()} />
        </>
      )}
    </>
  );
}

/** Returns the base64 of a file. */
async function encode(file: File): Promise<string> {
  const content = new Uint8Array(await file.arrayBuffer());
  const chunks = Array.from({ length: Math.ceil(content.length / 8_192) }, (_, part) => String.fromCharCode(...content.subarray(part * 8_192, (part + 1) * 8_192)));
  return btoa(chunks.join(''));
}

/** A file is sent as base64. The browser shows the name of a file only until the page changes. */
function FileField({ attributes, text, change }: InputProps) {
  const newest = useRef(0);
  const [failure, setFailure] = useState<string>();
  /** A large file may be read after one that was chosen later. */
  const read = async (file: File | undefined) => {
    const number = (newest.current += 1);
    const content = file ? await encode(file).catch((error: unknown) => new Error(`${file.name} could not be read: ${error instanceof Error ? error.message : String(error)}`)) : '';
    if (number !== newest.current) return;
    setFailure(content instanceof Error ? content.message : undefined);
    change(content instanceof Error ? '' : content);
  };
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (text === '' && field.current) field.current.value = '';
  }, [text]);
  return (
    <>
      <input {...attributes} ref={field} type="file" onChange={(event) => void read(event.target.files?.[0])} />
      {failure && (
        <span className="bad-text" role="alert">
          {failure}
        </span>
      )}
      {text && <span className="faint">{bytes(Math.floor((text.replace(/=+$/, '').length * 3) / 4))} are sent</span>}
    </>
  );
}
