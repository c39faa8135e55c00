// Runs one javascript node. Reads `request.json` from the folder of this file, and writes `answer.json` to it.
'use strict';

const fs = require('node:fs');
const { createRequire } = require('node:module');
const path = require('node:path');
const vm = require('node:vm');
const { ctx, settled } = require('windlass');

// The worker redacts secrets before it truncates messages and stacks to the size of an error.
const STACK_MAX = 1024 * 1024;
const OWN = ['ctx', 'inputs', 'require'];

class NotJson extends Error {}

// Serialises a value; throws an error with the place of a part that is not JSON.
function plain(value) {
  const places = new Set();
  const seen = [];
  return JSON.stringify(value, function (key, item) {
    const place = key === '' ? 'the result' : `\`${key}\` of the result`;
    if (typeof item === 'bigint') throw new NotJson(`${place} is a BigInt; return it as a string with String()`);
    if (typeof item === 'function' || typeof item === 'symbol') throw new NotJson(`${place} is a ${typeof item}, which is not a JSON type`);
    if (typeof item === 'number' && !Number.isFinite(item)) throw new NotJson(`${place} is ${item}, and JSON has no such number`);
    if (item !== null && typeof item === 'object') {
      while (seen.length && seen[seen.length - 1] !== this) places.delete(seen.pop());
      if (places.has(item)) throw new NotJson(`${place} contains itself`);
      places.add(item);
      seen.push(item);
    }
    return item;
  });
}

function isName(name) {
  if (!/^[A-Za-z_$][\w$]*$/.test(name) || OWN.includes(name)) return false;
  try {
    new Function(name, '');
    return true;
  } catch {
    return false;
  }
}

async function run({ code, args, output }) {
  const result = output ?? 'result';
  const names = Object.keys(args).filter((name) => isName(name) && name !== result);
  const head = `(async (${[...OWN, ...names].join(', ')}) => {`;
  const tail = `\n;return typeof ${result} !== 'undefined' ? ${result} : typeof main === 'function' ? await main(inputs, ctx) : undefined;})`;
  const script = new vm.Script(head + code + tail, {
    filename: 'code.js',
    columnOffset: -head.length,
    importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  const required = createRequire(path.join(process.cwd(), 'code.js'));
  return script.runInThisContext()(ctx, ctx.inputs, required, ...names.map((name) => args[name]));
}

// Codes of Node.js and the kinds of trouble that the worker knows.
const TROUBLES = {
  ETIMEDOUT: 'timeout', UND_ERR_CONNECT_TIMEOUT: 'timeout', UND_ERR_HEADERS_TIMEOUT: 'timeout',
  ECONNRESET: 'connection', EPIPE: 'connection', ECONNREFUSED: 'refused', ENOTFOUND: 'dns', EAI_AGAIN: 'dns',
};

// Returns the first position of the node's own code in a stack; a syntax error has only a line.
function placeOf(error) {
  const found = /\bcode\.js:(\d+)(?::(\d+))?/.exec(String(error?.stack ?? ''));
  return { line: found ? Number(found[1]) : null, column: found?.[2] ? Number(found[2]) : null };
}

function describe(error) {
  const known = error instanceof Error || (error !== null && typeof error === 'object' && 'message' in error);
  const trouble = TROUBLES[error?.code] ?? TROUBLES[error?.cause?.code]
    ?? (error?.name === 'TimeoutError' ? 'timeout' : error instanceof SyntaxError ? 'syntax' : null);
  const own = typeof error?.code === 'string' && trouble === null && /^[A-Z][A-Z0-9_]+$/.test(error.code);
  return {
    exception_type: known ? String(error.name ?? 'Error') : typeof error,
    message: String(known ? error.message : error).slice(0, STACK_MAX),
    traceback: String(error?.stack ?? '').slice(0, STACK_MAX),
    trouble,
    ...placeOf(error),
    code: own ? error.code : null,
    retryable: typeof error?.retryable === 'boolean' ? error.retryable : null,
  };
}

async function answer(request) {
  try {
    const value = await run(request);
    if (value === undefined) return '{"unset":null}';
    return `{"result":${plain(value)}}`;
  } catch (error) {
    if (error instanceof NotJson) return JSON.stringify({ not_json: error.message });
    return JSON.stringify({ exception: describe(error) });
  }
}

(async () => {
  const file = path.join(__dirname, 'request.json');
  const request = JSON.parse(fs.readFileSync(file, 'utf8'));
  fs.unlinkSync(file);
  const response = await answer(request);
  await settled();
  fs.writeFileSync(path.join(__dirname, 'answer.json'), response, { mode: 0o600, flag: 'wx' });
  process.exit(0);
})();
