// Measures the page with a large execution: node bench/large.mjs
// 1,000 steps and a loop of 20,000 iterations, in a release or debug build (WINDLASS_BIN). Prints how long the graph takes from its
// data to the first picture, and the longest task of the main thread while log lines arrive.
import { chromium } from 'playwright-core';
import { Server } from '../tests/server.mjs';

const WIDTH = 20;
const DEPTH = 50;
const LINES_PER_SECOND = 200;

const step = (layer, place) => `s${layer}x${place}`;

/** Layers of steps, each followed by two of the next layer. */
function wide() {
  const nodes = [];
  const edges = [];
  for (let layer = 0; layer < DEPTH; layer += 1) {
    for (let place = 0; place < WIDTH; place += 1) {
      nodes.push({ id: step(layer, place), type: 'delay', config: { duration: 0 } });
      if (layer > 0) for (const from of new Set([place, (place + 1) % WIDTH])) edges.push({ source: step(layer - 1, from), target: step(layer, place) });
    }
  }
  return JSON.stringify({ name: 'wide', nodes, edges });
}

const LOOP = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: long-loop}
workload: {count: 20000}
workflow:
  - step: each
    loop: {in: "{{ range(workload.count) | list }}", iterator: n, spec: {mode: parallel, max_in_flight: 16}}
    tool: {kind: noop}
`;

const CHATTY = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: chatty}
workflow:
  - step: talk
    tool: {kind: shell, command: 'for n in $(seq 1 4000); do echo "line $n"; sleep ${1 / LINES_PER_SECOND}; done'}
`;

const server = await Server.start();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  await page.goto(server.link());
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  await page.addInitScript(() => {
    window.tasks = [];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map(({ startTime, duration }) => ({ startTime, duration })))).observe({ type: 'longtask', buffered: true });
  });

  const large = await server.start(wide());
  await page.goto(`${server.url}/executions/${large.execution}`);
  await page.locator('.step').first().waitFor();
  const drawn = await page.evaluate(() => {
    const data = performance.getEntriesByType('resource').filter(({ name }) => /\/graph\?/.test(name)).at(0);
    return Math.round(performance.now() - data.responseEnd);
  });
  const longest = () => page.evaluate(() => Math.round(Math.max(0, ...window.tasks.map(({ duration }) => duration))));
  console.log(`graph of ${WIDTH * DEPTH} steps: ${drawn} ms from its data to the first step, longest task ${await longest()} ms`);

  const loop = await server.run(LOOP);
  await page.goto(`${server.url}/executions/${loop.execution}?step=each`);
  await page.getByText('20,000 iterations').first().waitFor();
  console.log(`20,000 iterations: longest task ${await longest()} ms`);
  await page.goto(`${server.url}/executions/${loop.execution}/timeline`);
  await page.getByRole('heading', { name: 'Where the time went' }).waitFor();
  console.log(`their timeline: longest task ${await longest()} ms`);

  const chatty = await server.start(CHATTY);
  await page.goto(`${server.url}/executions/${chatty.execution}/logs`);
  await page.getByText('line 500', { exact: false }).first().waitFor();
  await page.evaluate(() => (window.tasks.length = 0));
  await page.getByText('line 2000', { exact: false }).first().waitFor();
  console.log(`${LINES_PER_SECOND} lines a second: longest task ${await longest()} ms`);
} finally {
  await browser.close();
  await server.close();
}
