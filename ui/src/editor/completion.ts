// Completion of YAML from a JSON Schema. The place of the cursor is found by indentation, which also works in a document that
// cannot be parsed yet.
import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';

export interface JsonSchema {
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  definitions?: Record<string, JsonSchema>;
  properties?: Record<string, JsonSchema>;
  additionalProperties?: JsonSchema | boolean;
  items?: JsonSchema | boolean;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  if?: JsonSchema;
  then?: JsonSchema;
  else?: JsonSchema;
  enum?: unknown[];
  const?: unknown;
  type?: string | string[];
  description?: string;
}

/** A step into a document: the key of a map, or an item of a list. */
type Step = string | typeof ITEM;
const ITEM = Symbol('item');
/** References are followed this often; a schema may refer to itself. */
const DEPTH_MAX = 12;

const LINE = /^(\s*)((?:- +)*)(?:("?)([\w$.-]+)\3\s*:)?/;

/** The place that a line is in: the keys and lists around its indentation. */
export function placeOf(lines: readonly string[], indent: number): Step[] {
  const place: Step[] = [];
  let [keyLimit, itemLimit] = [indent, indent];
  for (let number = lines.length - 1; number >= 0 && keyLimit > 0; number -= 1) {
    const line = lines[number] ?? '';
    if (!line.trim() || line.trimStart().startsWith('#')) continue;
    const [, spaces = '', dashes = '', , key] = LINE.exec(line) ?? [];
    const keyIndent = spaces.length + dashes.length;
    if (key && keyIndent < keyLimit) {
      place.unshift(key);
      keyLimit = itemLimit = keyIndent;
    }
    if (dashes && spaces.length < itemLimit) {
      place.unshift(ITEM);
      itemLimit = spaces.length;
      // A list may begin at the indentation of its key.
      keyLimit = spaces.length + 1;
    }
  }
  return place;
}

function followPointer(root: unknown, pointer: string): unknown {
  return pointer.split('/').reduce<unknown>((inner, key) => (inner as Record<string, unknown> | undefined)?.[key.replaceAll('~1', '/')], root);
}

/** A schema with all that it refers to or is combined from. */
function resolve(root: JsonSchema, schema: JsonSchema, depth = 0): JsonSchema[] {
  if (depth > DEPTH_MAX) return [];
  const target = schema.$ref?.startsWith('#/') && followPointer(root, schema.$ref.slice(2));
  const parts = [target, ...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? []), schema.then, schema.else];
  return [schema, ...parts.flatMap((part) => (part !== null && typeof part === 'object' ? resolve(root, part as JsonSchema, depth + 1) : []))];
}

/** All schemas that may hold at a place. */
export function schemasAt(root: JsonSchema, place: readonly Step[]): JsonSchema[] {
  let found = resolve(root, root);
  for (const step of place) {
    const next = found.flatMap(({ properties, additionalProperties, items }) => {
      const inner = step === ITEM ? items : (properties?.[step] ?? additionalProperties);
      return inner && typeof inner === 'object' ? [inner] : [];
    });
    // A list may be written where a schema also accepts one thing, and the reverse.
    if (next.length === 0 && step === ITEM) continue;
    found = next.flatMap((schema) => resolve(root, schema));
  }
  return found;
}

const brief = (text: string | undefined) => text?.split('\n\n')[0] ?? '';

function keysOf(schemas: readonly JsonSchema[]): Completion[] {
  const found = new Map<string, Completion>();
  for (const { properties } of schemas) {
    for (const [key, schema] of Object.entries(properties ?? {})) {
      if (!found.get(key)?.info) found.set(key, { label: key, type: 'property', apply: `${key}: `, info: brief(schema.description) });
    }
  }
  return [...found.values()];
}

function valuesOf(root: JsonSchema, schemas: readonly JsonSchema[]): Completion[] {
  const all = schemas.flatMap((schema) => resolve(root, schema));
  const values = all.flatMap((schema) => [...(schema.enum ?? []), ...(schema.const === undefined ? [] : [schema.const]), ...(schema.type === 'boolean' ? [true, false] : [])]);
  const described = new Map(all.filter((schema) => schema.const !== undefined).map((schema) => [String(schema.const), brief(schema.description)]));
  return [...new Set(values.map(String))].map((label) => ({ label, type: 'enum', info: described.get(label) ?? '' }));
}

export function completeFrom(root: JsonSchema): (context: CompletionContext) => CompletionResult | null {
  return (context) => {
    const line = context.state.doc.lineAt(context.pos);
    const before = line.text.slice(0, context.pos - line.from);
    const lines = context.state.doc.sliceString(0, line.from).split('\n');
    const [, spaces = '', dashes = ''] = LINE.exec(before) ?? [];
    const place = placeOf([...lines, spaces + dashes], spaces.length + dashes.length);
    const rest = before.slice(spaces.length + dashes.length);
    const value = /^([\w$.-]+):\s+(\S*)$/.exec(rest);
    if (value) {
      const [, key = '', typed = ''] = value;
      return { from: context.pos - typed.length, options: valuesOf(root, schemasAt(root, [...place, key])), validFor: /^\S*$/ };
    }
    if (!/^[\w$.-]*$/.test(rest) || (!context.explicit && rest === '')) return null;
    return { from: context.pos - rest.length, options: keysOf(schemasAt(root, place)), validFor: /^[\w$.-]*$/ };
  };
}
