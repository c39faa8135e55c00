// Measures the page with a large execution: node bench/large.mjs [FOLDER]
// 1,000 steps and a loop of 20,000 iterations, with a release or debug build (WINDLASS_BIN). The times are those of Chromium's own
// trace: tasks of the main thread, and the delay from an input to its handler. An argument keeps the traces in that folder, with
// profiles. Exits with 1 if an input waited for more than 100 ms, or if the server did not reach the rate of changes.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { serveFromDisk } from '../tests/disk.mjs';
import { Server } from '../tests/server.mjs';

const CHAINS = 20;
const LENGTH = 50;
const ITERATIONS = 20_000;
const PER_SECOND = 200;
const IN_FLIGHT = 16;
/** Loops of the live execution, which run at the same time. */
const LOOPS = 8;
/** Iterations of each of them at a time. */
const LOOP_IN_FLIGHT = 10;
/** A machine that is not quiet reaches a part of the rate only. */
const RATE_MIN = 0.9 * PER_SECOND;
/** Maximum wait of an input. */
const DELAY_MAX_MS = 100;
const WATCHED_MS = 10_000;
const KEY_EVERY_MS = 50;
const QUIET_MS = 1_000;

const folder = process.argv[2];
if (folder) mkdirSync(folder, { recursive: true });

/** A loop, and after it chains of steps: 1,000 in all. */
function large(name, tool) {
  const step = (chain, place) => ({ step: `s${chain}x${place}`, tool: { kind: 'noop' }, ...(place + 1 < LENGTH && { next: { step: `s${chain}x${place + 1}` } }) });
  const chains = Array.from({ length: CHAINS }, (_, chain) => Array.from({ length: LENGTH - (chain === 0 ? 1 : 0) }, (_, place) => step(chain, chain === 0 ? place + 1 : place))).flat();
  const arcs = Array.from({ length: CHAINS }, (_, chain) => ({ step: `s${chain}x${chain === 0 ? 1 : 0}` }));
  const each = { step: 'each', loop: { in: '{{ range(workload.count) | list }}', iterator: 'n', spec: { mode: 'parallel', max_in_flight: IN_FLIGHT } }, tool, next: { spec: { mode: 'inclusive' }, arcs } };
  return JSON.stringify({ apiVersion: 'noetl.io/v2', kind: 'Playbook', metadata: { name }, workload: { count: ITERATIONS }, workflow: [each, ...chains] });
}

/** A workflow of 1,000 nodes: chains, a loop whose iterations end at once, and loops whose bodies wait, so that a machine of any speed has the same
 * rate. The start and the end of each iteration's node are two events. */
function lively() {
  const duration = (LOOPS * LOOP_IN_FLIGHT * 2 * 1_000) / PER_SECOND;
  const loops = Array.from({ length: LOOPS }, (_, number) => `each${number}`);
  const chain = (number) => Array.from({ length: LENGTH }, (_, place) => `s${number}x${place}`);
  const chains = Array.from({ length: CHAINS }, (_, number) => chain(number).slice(0, number === 0 ? LENGTH - 3 - 2 * LOOPS : LENGTH));
  const nodes = [
    { id: 'start', type: 'trigger' },
    ...loops.flatMap((id) => [
      { id, type: 'loop', config: { loopType: 'count', maxIterations: ITERATIONS, parallelExecution: true, maxParallel: LOOP_IN_FLIGHT } },
      { id: `wait-${id}`, type: 'delay', config: { duration, unit: 'ms' } },
    ]),
    { id: 'history', type: 'loop', config: { loopType: 'count', maxIterations: ITERATIONS, parallelExecution: true, maxParallel: 500 } },
    { id: 'past', type: 'delay', config: { duration: 0 } },
    ...chains.flat().map((id) => ({ id, type: 'delay', config: { duration: 0 } })),
  ];
  const edges = [
    { source: 'start', target: 'history' },
    { source: 'history', target: 'past', sourceHandle: 'body' },
    ...loops.flatMap((id) => [{ source: 'start', target: id }, { source: id, target: `wait-${id}`, sourceHandle: 'body' }]),
    ...chains.flatMap((ids) => ids.map((id, place) => ({ source: place === 0 ? 'start' : ids[place - 1], target: id }))),
  ];
  return JSON.stringify({ name: 'lively', nodes, edges });
}

const CHATTY = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: chatty}
workflow:
  - step: talk
    tool: {kind: shell, command: 'for n in $(seq 1 8000); do echo "line $n"; sleep ${1 / PER_SECOND}; done'}
`;

/** The first frame with a step of the graph, and the delays of inputs as the browser measures them. */
function observe() {
  window.seen = { drawn: undefined, delays: [] };
  const look = () => {
    if (document.querySelector('.step')) window.seen.drawn = performance.now();
    else requestAnimationFrame(look);
  };
  // Only the view of the graph has steps: elsewhere, a look at each frame would be work of its own.
  if (!/\/(logs|timeline)$/.test(location.pathname)) requestAnimationFrame(look);
  new PerformanceObserver((list) => window.seen.delays.push(...list.getEntries().map(({ processingStart, startTime, duration }) => ({ delay: processingStart - startTime, duration })))).observe({
    type: 'event',
    durationThreshold: 16,
    buffered: true,
  });
}

const server = await Server.start();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });

/** Time of the processor that the main thread used while the last trace was made: other load of the machine does not change it much. */
let cpu = 0;

/** Traces a page while something happens, and returns the tasks of its main thread in milliseconds, the longest first. */
async function traced(page, name, work) {
  await browser.startTracing(page, { categories: ['devtools.timeline', 'disabled-by-default-devtools.timeline', 'blink.user_timing', 'loading', ...(folder ? ['disabled-by-default-v8.cpu_profiler'] : [])] });
  await work();
  const buffer = await browser.stopTracing();
  if (folder) writeFileSync(join(folder, `${name}.json`), buffer);
  const { traceEvents } = JSON.parse(buffer.toString());
  const main = new Set(traceEvents.filter((event) => event.name === 'thread_name' && event.args.name === 'CrRendererMain').map(({ pid, tid }) => `${pid} ${tid}`));
  const events = traceEvents.filter((event) => event.name === 'RunTask' && main.has(`${event.pid} ${event.tid}`));
  cpu = events.reduce((sum, event) => sum + (event.tdur ?? 0), 0) / 1_000;
  return events.map((event) => event.dur / 1_000).sort((one, other) => other - one);
}

const ms = (value) => `${Math.round(value)} ms`;
const quantile = (sorted, share) => sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? 0;

/** Presses keys while the page is live, and returns the delays of the browser's inputs, the longest first. */
async function pressKeys(page) {
  // A browser that begins a trace stops the page for a moment: inputs count from the first one that was handled after that.
  await page.keyboard.press('Shift');
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0))));
  await page.evaluate(() => (window.seen.delays.length = 0));
  const until = Date.now() + WATCHED_MS;
  let presses = 0;
  while (Date.now() < until) {
    await page.keyboard.press(presses % 2 ? 'Backspace' : 'x');
    presses += 1;
    await new Promise((later) => setTimeout(later, KEY_EVERY_MS));
  }
  return { presses, delays: await page.evaluate(() => window.seen.delays) };
}

const failures = [];

function report(name, tasks, { presses, delays }) {
  const sorted = delays.map(({ delay }) => delay).sort((one, other) => other - one);
  if (sorted[0] > DELAY_MAX_MS) failures.push(`${name}: an input waited for ${ms(sorted[0])}; the limit is ${ms(DELAY_MAX_MS)}`);
  const whole = delays.map(({ duration }) => duration).sort((one, other) => other - one);
  console.log(`${name}: ${presses} keys, longest delay of an input ${ms(sorted[0] ?? 0)}, until the next frame ${ms(whole[0] ?? 0)} (99 %: ${ms(quantile(whole, 0.01))}); longest task ${ms(tasks[0] ?? 0)}`);
}

try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  await serveFromDisk(context);
  const page = await context.newPage();
  page.setDefaultTimeout(180_000);
  await page.goto(server.link());
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  await page.addInitScript(observe);

  const ended = await server.run(large('large', { kind: 'noop' }));
  let path = `/executions/${ended.execution}`;
  await server.until(async () => (await server.api('GET', `${path}/status`)).body.status === 'completed');
  for (const [name, query] of [['graph of 1,000 steps', ''], ['with the 20,000 iterations of a chosen step', '?step=each']]) {
    const tasks = await traced(page, name.replaceAll(/\W+/g, '-'), async () => {
      await page.goto(`${server.url}${path}${query}`);
      await page.locator('.step').first().waitFor();
      if (query) await page.getByText(/\d iterations/).first().waitFor();
      // The page is idle when it has had no long task for a while.
      await page.evaluate((quiet) => new Promise((done) => {
        let timer = setTimeout(done, quiet);
        new PerformanceObserver((list) => {
          window.seen.last = Math.max(...list.getEntries().map(({ startTime, duration }) => startTime + duration), window.seen.last ?? 0);
          clearTimeout(timer);
          timer = setTimeout(done, quiet);
        }).observe({ type: 'longtask', buffered: true });
      }), QUIET_MS);
    });
    const seen = await page.evaluate(() => {
      const data = performance.getEntriesByType('resource').filter(({ name }) => /\/executions\/[^/]+(\/graph.*)?$/.test(name));
      return { data: Math.max(...data.map(({ responseEnd }) => responseEnd)), first: Math.min(...data.map(({ startTime }) => startTime)), size: data.reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0), drawn: window.seen.drawn, last: window.seen.last ?? 0 };
    });
    console.log(`${name}: data of ${Math.round(seen.size / 1024)} KiB in ${ms(seen.data - seen.first)}; the first step ${ms(seen.drawn - seen.data)} after it, interactive ${ms(Math.max(seen.drawn, seen.last) - seen.data)} after it; longest task ${ms(tasks[0])}; ${ms(cpu)} of the processor from the request on`);
  }
  await page.goto(`${server.url}${path}/timeline`);
  const timeline = await traced(page, 'timeline', async () => {
    await page.reload();
    await page.getByText(/Where the time went|events are shown/).first().waitFor();
  });
  console.log(`its timeline: longest task ${ms(timeline[0])}`);

  const live = await server.start(lively());
  path = `/executions/${live.execution}`;
  const firings = async (isWanted) => (await server.api('GET', `${path}/graph?format=json`)).body.nodes.reduce((sum, { id, state }) => sum + (isWanted(id) ? (state?.firings ?? 0) : 0), 0);
  await server.until(async () => (await firings((id) => id === 'past')) === ITERATIONS);
  await page.goto(`${server.url}${path}`);
  await page.locator('.step', { hasText: 'times' }).first().waitFor();
  const count = async () => (await firings((id) => id.startsWith('wait-'))) * 2;
  const [before, from] = [await count(), Date.now()];
  let pressed;
  const whileLive = await traced(page, 'live-graph', async () => (pressed = await pressKeys(page)));
  const rate = ((await count()) - before) / ((Date.now() - from) / 1_000);
  report(`live graph of 1,000 steps at ${Math.round(rate)} node events a second`, whileLive, pressed);
  if (rate < RATE_MIN) failures.push(`live graph: ${Math.round(rate)} node events a second; ${PER_SECOND} are wanted`);
  await server.api('POST', `${path}/cancel`, { reason: 'measured', force: true });

  const chatty = await server.start(CHATTY);
  await page.goto(`${server.url}/executions/${chatty.execution}/logs`);
  await page.getByText('line 1000', { exact: false }).first().waitFor();
  await page.getByLabel('Search in the logs').focus();
  const chatting = await traced(page, 'logs', async () => (pressed = await pressKeys(page)));
  report(`logs at ${PER_SECOND} lines a second, typing a search`, chatting, pressed);
  for (const failure of failures) console.error(failure);
  process.exitCode = failures.length > 0 ? 1 : 0;
} finally {
  await browser.close();
  await server.close();
}
