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
  return { type: 'object', properties: Object.fromEntries(Object.entries(defaults).map(([key, value]) => [key, { type: typeName(value), default: value }])) };
}

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
  try {
    return { value: JSON.parse(text) };
  } catch {
    return type === 'any' ? { value: text } : { error: `is not JSON: expected ${type === 'array' ? 'a list such as [1, 2]' : type === 'object' ? 'an object such as {"a": 1}' : type}` };
  }
}

export const showInput = (value: unknown): string => (value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value));
