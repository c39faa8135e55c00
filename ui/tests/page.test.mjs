// The page in a real browser, against a real server. Every test watches for errors of the console and for requests that leave
// the server.
import { AxeBuilder } from '@axe-core/playwright';
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { APPROVAL, FAILING, HOSTILE, Server } from './server.mjs';

let server;
let browser;

before(async () => {
  server = await Server.start();
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
});

after(async () => {
  await browser?.close();
  await server?.close();
});

/** Opens a browser of its own, signed in by a link, and checks at the end that nothing went wrong in it. */
async function signedIn(work, options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const wrong = [];
  page.on('console', (message) => message.type() === 'error' && !options.mayFail && wrong.push(message.text()));
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('dialog', (dialog) => (wrong.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  page.on('request', (request) => !request.url().startsWith(server.url) && !request.url().startsWith('data:') && wrong.push(`left: ${request.url()}`));
  await page.goto(server.link());
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  await work(page, context);
  assert.deepEqual(wrong, []);
  await context.close();
}

const open = (page, path) => page.goto(server.url + path);

test('a link signs in once, and a token by itself', async () => {
  const link = server.link();
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(link);
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  assert.equal(new URL(page.url()).hash, '', 'the code is not kept in the address');
  const [cookie] = await context.cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, 'Strict']);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').waitFor();
  await page.goto(link);
  await page.getByText('was used before or has expired').waitFor();
  await page.getByLabel('Token').fill('wdl_wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('unknown, expired or revoked').waitFor();
  await page.getByLabel('Token').fill(server.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  await context.close();
});

test('an approval is answered in place, and the page follows', async () => {
  const { execution } = await server.run(APPROVAL);
  await signedIn(async (page) => {
    await page.getByRole('region').or(page.locator('section')).getByText('release').first().click();
    await open(page, `/executions/${execution}`);
    await page.getByText('May it go out?').first().waitFor();
    await page.getByLabel('Notes').fill('looks good');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.locator('header .status.completed').waitFor();
    const { body } = await server.api('GET', `/executions/${execution}`);
    assert.equal(body.status, 'completed');
  });
});

test('a failure names its place, and a retry shows first what runs again', async () => {
  const { execution } = await server.run(FAILING);
  await signedIn(async (page) => {
    await open(page, `/executions/${execution}/steps`);
    await page.locator('.failures').getByText('second').waitFor();
    await page.locator('.failures').getByText('the part is missing').waitFor();
    server.write('repaired', '');
    await page.getByRole('button', { name: 'Retry …' }).click();
    await page.getByText('1 result is kept. 1 firing runs again').waitFor();
    await page.getByRole('button', { name: 'Start' }).click();
    await page.waitForURL((url) => !url.pathname.includes(execution));
    await page.locator('header .status.completed').waitFor();
    await page.getByText('retry of').waitFor();
  });
});

test('the graph shows every step with its state, and a chosen step its result', async () => {
  const { execution } = await server.run(FAILING);
  await signedIn(async (page) => {
    await open(page, `/executions/${execution}`);
    await page.locator('.step.completed', { hasText: 'first' }).waitFor();
    await page.locator('.step', { hasText: 'second' }).click();
    await page.locator('.steps details', { hasText: 'second' }).waitFor();
    await page.getByRole('link', { name: 'Timeline' }).click();
    await page.locator('.timeline li', { hasText: 'first' }).waitFor();
    await page.getByRole('link', { name: 'Events' }).click();
    await page.getByText('execution.created').waitFor();
  });
});

test('filters are in the address', async () => {
  await server.run(FAILING);
  await signedIn(async (page) => {
    await open(page, '/executions');
    await page.getByLabel('Status').selectOption('cancelled');
    await page.getByText('No execution matches.').waitFor();
    assert.equal(new URL(page.url()).search, '?status=cancelled');
    await open(page, '/executions?status=completed');
    await page.locator('tbody .status.completed').first().waitFor();
    assert.equal(await page.locator('tbody .status:not(.completed)').count(), 0);
  });
});

test('a workflow is started with inputs from its page', async () => {
  const { workflow } = await server.run(FAILING);
  await signedIn(async (page) => {
    await open(page, `/workflows/${workflow}`);
    await page.getByText('metadata: {name: fragile}').waitFor();
    await page.locator('.step', { hasText: 'first' }).waitFor();
    await page.getByLabel('Inputs as JSON').fill('[1]');
    await page.getByText('The inputs are an object').waitFor();
    await page.getByLabel('Inputs as JSON').fill('{}');
    await page.getByRole('button', { name: 'Start' }).click();
    await page.waitForURL(/executions\/exec_/);
    await page.locator('header .status.completed').waitFor();
  });
});

test('markup in names, results, logs and errors is shown as text', async () => {
  const { execution, workflow } = await server.run(HOSTILE);
  await signedIn(async (page) => {
    for (const tab of ['graph', 'timeline', 'steps', 'values', 'logs', 'events']) {
      await open(page, `/executions/${execution}/${tab}`);
      await page.getByRole('heading', { name: '<img src=x onerror=alert(1)>' }).waitFor();
      await page.waitForLoadState('networkidle');
      assert.equal(await page.locator('main img, main script, main svg[onload], a[href^="javascript:"]').count(), 0, tab);
    }
    await open(page, `/executions/${execution}/logs`);
    await page.getByText('<svg onload=alert(4)>').first().waitFor();
    assert.ok(!(await page.locator('.logs').innerText()).includes('\u001b'));
    await open(page, `/workflows/${workflow}`);
    await page.getByText('<script>alert(3)</script>').first().waitFor();
  });
});

for (const colorScheme of ['light', 'dark']) {
  test(`pages are accessible in the ${colorScheme} theme`, async () => {
    const { execution, workflow } = await server.run(FAILING);
    await signedIn(
      async (page) => {
        const paths = ['/', '/executions', '/workflows', `/workflows/${workflow}`, ...['graph', 'timeline', 'steps', 'values', 'logs', 'events'].map((tab) => `/executions/${execution}/${tab}`)];
        for (const path of paths) {
          await open(page, path);
          await page.locator('h1').waitFor();
          await page.waitForLoadState('networkidle');
          const { violations } = await new AxeBuilder({ page }).analyze();
          const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
          assert.deepEqual(serious.map(({ id, nodes }) => `${path}: ${id}: ${nodes[0]?.html}`), []);
        }
      },
      { colorScheme },
    );
  });
}

test('keys lead through the page', async () => {
  await signedIn(async (page) => {
    await page.keyboard.press('g');
    await page.keyboard.press('w');
    await page.getByRole('heading', { name: 'Workflows' }).waitFor();
    await page.keyboard.press('/');
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('type')), 'search');
    await page.keyboard.press('Tab');
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });
});

test('after a kill of the server the page shows the truth without a reload', async () => {
  const { execution } = await server.run(APPROVAL);
  await signedIn(
    async (page) => {
      await open(page, `/executions/${execution}`);
      await page.locator('header .status.paused').waitFor();
      await server.kill();
      await server.open();
      const done = await server.api('POST', `/executions/${execution}/actions/ask/complete`, { outcome: 'Succeeded' });
      assert.ok(done.status < 300, JSON.stringify(done.body));
      await page.locator('header .status.completed').waitFor();
    },
    // The browser itself reports requests that nothing answers.
    { mayFail: true },
  );
});

test('a revoked token ends the session', async () => {
  const made = await server.api('POST', '/tokens', { name: 'guest', role: 'viewer' });
  const context = await browser.newContext();
  const page = await context.newPage();
  await open(page, '/sign-in');
  await page.getByLabel('Token').fill(made.body.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  await page.getByText('viewer of default').waitFor();
  await server.api('DELETE', `/tokens/${made.body.id}`);
  await page.getByLabel('Token').waitFor();
  await context.close();
});

test('other sites cannot use the session', async () => {
  const code = new URL(server.link()).hash.slice(1);
  const signIn = await fetch(`${server.url}/api/v1/session`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ code }) });
  const cookie = signIn.headers.get('set-cookie').split(';')[0];
  const send = async (method, headers) => (await fetch(`${server.url}/api/v1/${method === 'POST' ? 'session/link' : 'me'}`, { method, headers: { cookie, ...headers } })).status;
  assert.equal(await send('GET', { 'sec-fetch-site': 'same-origin' }), 200);
  assert.equal(await send('POST', { 'sec-fetch-site': 'same-origin' }), 201);
  assert.equal(await send('GET', { 'sec-fetch-site': 'cross-site' }), 401);
  assert.equal(await send('POST', { 'sec-fetch-site': 'same-site' }), 401);
  assert.equal(await send('POST', { origin: 'http://127.0.0.1:1' }), 401);
});
