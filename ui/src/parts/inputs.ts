// The inputs of a definition as a JSON Schema: the declared one, or one derived from the defaults.
export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  format?: string;
  contentEncoding?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
}

type Fields = Record<string, unknown>;

const isObject = (value: unknown): value is Fields => value !== null && typeof value === 'object' && !Array.isArray(value);

const field = (value: unknown, ...path: string[]): unknown => path.reduce<unknown>((inner, key) => (isObject(inner) ? inner[key] : undefined), value);

export function inputSchema(dialect: string, definition: unknown): Schema | undefined {
  const found = declared(dialect, definition);
  return isObject(found) && isObject(found['properties']) ? (found as Schema) : undefined;
}

function declared(dialect: string, definition: unknown): unknown {
  if (dialect === 'playbook') return fromDefaults(field(definition, 'workload'));
  if (dialect === 'workflow') {
    const nodes = field(definition, 'nodes');
    const trigger = Array.isArray(nodes) ? nodes.find((node) => field(node, 'type') === 'trigger') : undefined;
    return field(trigger, 'config', 'manualConfig', 'inputPayload') ?? field(trigger, 'data', 'config', 'manualConfig', 'inputPayload');
  }
  return field(definition, 'inputs');
}

function fromDefaults(defaults: unknown): Schema | undefined {
  if (!isObject(defaults)) return undefined;
  return { type: 'object', properties: Object.fromEntries(Object.entries(defaults).map(([key, value]) => [key, { type: typeName(value), default: value, ...(isList(value) && { items: { type: 'string' } }) }])) };
}

/** A list of strings that has one, at least: an empty list may be of anything. */
const isList = (value: unknown): value is string[] => Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string');

function typeName(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (value === null) return 'string';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

/** The type of a field; of several types the first that is not null. */
export const typeOf = ({ type, enum: values }: Schema): string => (Array.isArray(type) ? type.find((name) => name !== 'null') : type) ?? (values ? 'string' : 'any');

/** Reads a value that was typed as text. Undefined means that the input is left out. */
export function parseInput(schema: Schema, text: string): { value?: unknown; error?: string } {
  if (text === '') return {};
  const listed = schema.enum?.find((value) => showInput(value) === text);
  if (listed !== undefined) return { value: listed };
  const type = typeOf(schema);
  if (type === 'string') return { value: text };
  if (type === 'integer' || type === 'number') {
    const value = Number(text);
    return Number.isNaN(value) || (type === 'integer' && !Number.isInteger(value)) ? { error: `is not ${type === 'integer' ? 'a whole number' : 'a number'}` } : { value };
  }
  if (isStrings(schema) && !text.trimStart().startsWith('[')) return { value: text.split('\n').map((line) => line.trim()).filter(Boolean) };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return type === 'any' ? { value: text } : { error: `is not JSON: expected ${SHAPES[type] ?? type}` };
  }
}

const SHAPES: Record<string, string> = { array: 'a list such as [1, 2]', object: 'an object such as {"a": 1}' };

const isStrings = (schema: Schema): boolean => typeOf(schema) === 'array' && schema.items !== undefined && typeOf(schema.items) === 'string';

/** How the text of a field is read, if its control does not show it. */
export function hintOf(schema: Schema): string | undefined {
  if (schema.enum) return undefined;
  if (isStrings(schema)) return 'One item per line.';
  const shape = SHAPES[typeOf(schema)];
  return shape && `JSON: ${shape}`;
}

/** The text of a value in the field of a form. */
export function fieldText(schema: Schema, value: unknown): string {
  const isLines = isStrings(schema) && !schema.enum && isList(value) && value.every((item) => item !== '' && item === item.trim() && !item.includes('\n')) && !value[0]?.startsWith('[');
  return isLines ? value.join('\n') : showInput(value);
}

/** Whether a field of a form shows a value as it is: the text of null or of an empty string is also that of another value. */
export const isShown = (schema: Schema, value: unknown): boolean => JSON.stringify(parseInput(schema, fieldText(schema, value)).value) === JSON.stringify(value);

export const showInput = (value: unknown): string => (value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value));
