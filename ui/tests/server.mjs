// A real server in a folder of its own, and definitions to show.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const BINARY = resolve(process.env.WINDLASS_BIN ?? '../target/debug/windlass');

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await new Promise((ready) => probe.once('listening', ready));
  const { port } = probe.address();
  await new Promise((closed) => probe.close(closed));
  return port;
}

export class Server {
  workers = [];

  static async start(settings = {}) {
    const server = new Server();
    server.settings = settings;
    server.folder = mkdtempSync(join(tmpdir(), 'windlass-page-'));
    server.data = join(server.folder, 'data');
    server.port = await freePort();
    server.url = `http://127.0.0.1:${server.port}`;
    await server.open();
    return server;
  }

  async open() {
    const args = ['serve', '--data', this.data, '--listen', `127.0.0.1:${this.port}`];
    this.process = spawn(BINARY, args, { stdio: ['ignore', 'ignore', 'pipe'], cwd: this.folder, env: { ...process.env, WINDLASS_EGRESS_ALLOW: '127.0.0.1', ...this.settings } });
    let said = '';
    await new Promise((ready, fail) => {
      this.process.stderr.on('data', (text) => {
        said += text;
        if (said.includes('listening on')) ready();
      });
      this.process.once('exit', () => fail(new Error(`the server ended: ${said}`)));
    });
  }

  async kill() {
    const ended = new Promise((exit) => this.process.once('exit', exit));
    this.process.kill('SIGKILL');
    await ended;
  }

  /** Starts a worker process for a group in the cluster `local`. It ends with the server. */
  async work(group) {
    const args = ['worker', '--server', this.url, '--group', group, '--cluster', 'local'];
    const worker = spawn(BINARY, args, { stdio: ['ignore', 'ignore', 'pipe'], cwd: this.folder, env: { ...process.env, WINDLASS_TOKEN: this.token } });
    this.workers.push(worker);
    let said = '';
    await new Promise((ready, fail) => {
      worker.stderr.on('data', (text) => {
        said += text;
        if (said.includes('working for')) ready();
      });
      worker.once('exit', () => fail(new Error(`the worker ended: ${said}`)));
    });
  }

  async close() {
    for (const worker of this.workers) worker.kill('SIGKILL');
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  get token() {
    return readFileSync(join(this.data, 'owner.token'), 'utf8').trim();
  }

  /** Runs a command of the binary in the data folder, and returns its output. */
  command(...args) {
    const done = spawnSync(BINARY, [...args, '--data', this.data], { cwd: this.folder, encoding: 'utf8' });
    return { code: done.status, stdout: done.stdout, stderr: done.stderr };
  }

  link() {
    const { stdout, stderr } = this.command('page', '--json');
    if (!stdout) throw new Error(stderr);
    return JSON.parse(stdout).url;
  }

  async api(method, path, body, token = this.token) {
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': typeof body === 'string' ? 'application/yaml' : 'application/json' },
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, body: text ? JSON.parse(text) : undefined };
  }

  /** Registers a definition and starts it; returns when it has ended or waits. */
  run(definition, inputs = {}) {
    return this.start(definition, inputs, { async: false });
  }

  /** Registers a definition and starts it. */
  async start(definition, inputs = {}, options = {}) {
    const { status, body } = await this.api('POST', '/workflows', definition.trimStart());
    if (status !== 201) throw new Error(JSON.stringify(body));
    const started = await this.api('POST', `/workflows/${body.id}/execute`, { inputs, options });
    if (started.status >= 300) throw new Error(JSON.stringify(started.body));
    return { workflow: body.id, execution: started.body.executionId };
  }

  /** Creates a plan, and returns its id. */
  async plan(document) {
    const { status, body } = await this.api('POST', '/plans', document);
    if (status > 201) throw new Error(JSON.stringify(body));
    return body.id;
  }

  /** Starts a plan, and returns the id of the execution. */
  async startPlan(planID, spec = {}) {
    const { status, body } = await this.api('POST', '/plan-executions', { spec: { planID, ...spec } });
    if (status !== 201) throw new Error(JSON.stringify(body));
    return body.id;
  }

  /** Waits for the end of an execution of a plan, and returns its status. */
  async planEnd(id) {
    let body;
    await this.until(async () => (body = (await this.api('GET', `/plan-executions/${id}`)).body).status.completedAt);
    return body.status;
  }

  /** Waits until the server is in a state. */
  async until(isReached) {
    while (!(await isReached())) await new Promise((later) => setTimeout(later, 50));
  }

  write(name, text) {
    writeFileSync(join(this.folder, name), text);
  }

  remove(name) {
    rmSync(join(this.folder, name), { force: true });
  }
}

export const APPROVAL = `
name: release
nodes:
  - {id: start, type: trigger}
  - {id: ask, type: approval, name: Ask the captain, config: {message: 'May it go out?', timeout: 7d}}
  - {id: publish, type: shell, config: {command: echo published}}
edges:
  - {source: start, target: ask}
  - {source: ask, target: publish}
`;

/** Fails in its second step unless the file is there. */
export const FAILING = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: fragile}
workflow:
  - step: first
    tool: {kind: shell, command: echo one >> ran}
    next: {step: second, when: "{{ event.name == 'step.done' }}"}
  - step: second
    tool: {kind: shell, command: 'test -e repaired || { echo the part is missing >&2; exit 3; }'}
`;

/** Markup, control sequences and links wherever a definition or its results may have text. */
export const HOSTILE = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: "<img src=x onerror=alert(1)>"}
workload: {link: "javascript:alert(2)", markup: "<script>alert(3)</script>"}
workflow:
  - step: "<b>bold</b>"
    tool: {kind: shell, command: "printf '\\\\033[31m<svg onload=alert(4)>\\\\033[0m\\\\n'; exit 1"}
    next: {step: "after", when: "{{ event.name == '<i>x</i>' }}"}
  - step: after
    tool: {kind: noop}
`;
