// The context of a workflow node: const { ctx } = require('windlass')
'use strict';

const fs = require('node:fs');
const net = require('node:net');
const path = require('node:path');

const read = (name) => JSON.parse(fs.readFileSync(path.join(process.env.WINDLASS_CONTEXT, name), 'utf8'));

function ask(request) {
  return new Promise((resolve, reject) => {
    const connection = net.createConnection(process.env.WINDLASS_SOCKET);
    let answer = '';
    connection.setEncoding('utf8');
    connection.on('connect', () => connection.write(JSON.stringify(request) + '\n'));
    connection.on('error', reject);
    connection.on('close', () => reject(new Error('the worker is gone')));
    connection.on('data', (piece) => {
      answer += piece;
      if (!answer.endsWith('\n')) return;
      const reply = JSON.parse(answer);
      if ('error' in reply) reject(new Error(reply.error));
      else resolve(reply.ok);
      connection.end();
    });
  });
}

// The program does not have to await lines, counts and progress; the runner awaits open requests before it exits.
const open = new Set();
function send(request) {
  const sent = ask(request).finally(() => open.delete(sent));
  open.add(sent);
  // A caller that awaits the promise gets its error; otherwise the error must not end the program as an unhandled rejection.
  sent.catch(() => {});
  return sent;
}
const settled = () => Promise.allSettled([...open]);

const log = (level) => (message, data) => send({ op: 'log', level, message: String(message), data: data ?? null });

let credentials;
let controller;
const context = read('context.json');

const ctx = {
  executionId: context.executionId,
  workflowId: context.workflowId,
  tenantId: context.tenantId,
  nodeId: context.nodeId,
  nodeName: context.nodeName,
  nodeType: context.nodeType,
  attempt: context.attempt,
  debug: context.debug,
  inputs: context.inputs,
  workflowInputs: context.workflowInputs,
  config: context.config,
  env: context.env,
  get credentials() {
    credentials ??= read('credentials.json');
    return credentials;
  },
  logger: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
  metrics: {
    count: (name, value = 1) => send({ op: 'metric', name, value }),
    increment: (name, value = 1) => send({ op: 'metric', name, value }),
  },
  getState: (key) => ask({ op: 'get_state', key }),
  setState: (key, value) => ask({ op: 'set_state', key, value: value ?? null }),
  progress: (step, percentage) => send({ op: 'progress', step, percentage }),
  // Aborted when the node must stop; the program should listen to it and exit.
  get signal() {
    if (!controller) {
      controller = new AbortController();
      process.on('SIGTERM', () => controller.abort());
      if (fs.existsSync(process.env.WINDLASS_ABORT)) controller.abort();
    }
    return controller.signal;
  },
};

module.exports = { ctx, settled };
