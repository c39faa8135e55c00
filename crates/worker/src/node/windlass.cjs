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
      const told = JSON.parse(answer);
      if ('error' in told) reject(new Error(told.error));
      else resolve(told.ok);
      connection.end();
    });
  });
}

// Lines, counts and progress need no answer; what was asked for is waited for before the program ends.
const open = new Set();
function tell(request) {
  const asked = ask(request).finally(() => open.delete(asked));
  open.add(asked);
  // Who awaits it hears of the trouble; who does not is not ended by it.
  asked.catch(() => {});
  return asked;
}
const settled = () => Promise.allSettled([...open]);

const log = (level) => (message, data) => tell({ op: 'log', level, message: String(message), data: data ?? null });

let credentials;
let controller;
const told = read('context.json');

const ctx = {
  executionId: told.executionId,
  workflowId: told.workflowId,
  tenantId: told.tenantId,
  nodeId: told.nodeId,
  nodeName: told.nodeName,
  nodeType: told.nodeType,
  attempt: told.attempt,
  debug: told.debug,
  inputs: told.inputs,
  workflowInputs: told.workflowInputs,
  config: told.config,
  env: told.env,
  get credentials() {
    credentials ??= read('credentials.json');
    return credentials;
  },
  logger: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
  metrics: {
    count: (name, value = 1) => tell({ op: 'metric', name, value }),
    increment: (name, value = 1) => tell({ op: 'metric', name, value }),
  },
  getState: (key) => ask({ op: 'get_state', key }),
  setState: (key, value) => ask({ op: 'set_state', key, value: value ?? null }),
  progress: (step, percentage) => tell({ op: 'progress', step, percentage }),
  // Whoever looks at it ends by itself when it is aborted.
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
