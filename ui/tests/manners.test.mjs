import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { fill, MANUAL, SAGA } from './demo.mjs';
import { checkAccess, harness } from './harness.mjs';
import { APPROVAL } from './server.mjs';

const at = harness();
let filled;
const ids = () => (filled ??= begin());

async function begin() {
  const made = await fill(at.server);
  const [manual, saga] = [await at.server.run(MANUAL), await at.server.run(SAGA)];
  const { items } = (await at.server.api('GET', `/schedules/${made.broken}/runs`)).body;
  await at.server.api('POST', '/tenants', { name: 'a second tenant' });
  return { ...made, manual, saga, run: items[0].id };
}

const PATHS = ({ form, loop, gate, schedule, broken, approval, manual, saga, run }) => [
  '/',
  '/sign-in',
  '/executions',
  ...['graph?step=book', 'timeline', 'steps', 'values', 'logs', 'children', 'events', 'evidence'].map((tab) => `/executions/${loop.execution}/${tab}`),
  `/executions/${gate.execution}`,
  `/executions/${approval.execution}`,
  `/executions/${manual.execution}`,
  `/executions/${saga.execution}/actions`,
  '/workflows',
  '/workflows/new',
  ...['overview', 'start', 'source', 'versions'].map((tab) => `/workflows/${form.workflow}/${tab}`),
  '/schedules',
  '/schedules/new',
  `/schedules/${schedule}`,
  `/schedules/${broken}`,
  `/runs/${run}`,
  '/dead-letters',
  ...['tokens', 'tenants', 'secrets', 'webhooks', 'workers', 'environments', 'quarantine', 'audit'].map((tab) => `/administration/${tab}`),
];

/** Where each dialog is, the button that opens it, and something that it shows when it is complete. */
const DIALOGS = ({ long, failing, schedule }) => [
  [`/executions/${long.execution}`, 'Cancel …', 'Cancel the execution'],
  [`/executions/${long.execution}`, 'Pause …', 'Pause the execution'],
  [`/executions/${long.execution}`, 'Patch …', 'Keys as JSON'],
  [`/executions/${failing.execution}`, 'Retry …', /again/],
  ['/executions', /^Cancel all/, /will be cancelled/],
  ['/executions', /^Retry all/, /will be retried/],
  [`/schedules/${schedule}`, 'Trigger …', 'Reason'],
  [`/schedules/${schedule}`, 'Backfill …', 'Occurrences of this time'],
  ['/administration/tenants', 'Change …', 'Open executions'],
  ['/', 'Keys', 'Keys without Ctrl'],
];

for (const colorScheme of ['light', 'dark']) {
  test(`axe finds nothing serious in any dialog in the ${colorScheme} theme`, async () => {
    const dialogs = DIALOGS(await ids());
    await at.signedIn(
      async (page) => {
        for (const [path, button, text] of dialogs) {
          await at.open(page, path);
          await page.getByRole('button', { name: button, exact: typeof button === 'string' }).first().click();
          const dialog = page.getByRole('dialog');
          await dialog.getByText(text).first().waitFor();
          await dialog.locator('[aria-busy]').first().waitFor({ state: 'detached' });
          await checkAccess(page, `${button} at ${path}`);
          await page.keyboard.press('Escape');
          await dialog.waitFor({ state: 'detached' });
        }
      },
      { colorScheme },
    );
  });


  test(`axe finds nothing serious on any page in the ${colorScheme} theme`, async () => {
    const paths = PATHS(await ids());
    await at.signedIn(
      async (page) => {
        for (const path of paths) {
          await at.open(page, path);
          await page.locator('h1').waitFor();
          await page.locator('main [aria-busy]').first().waitFor({ state: 'detached' });
          await checkAccess(page, path);
        }
        await page.keyboard.press('Control+K');
        await page.getByRole('listbox').getByRole('option').first().waitFor();
        await checkAccess(page, 'the palette');
      },
      { colorScheme },
    );
  });
}

test('keys navigate the page, and the palette finds pages and objects', async () => {
  await ids();
  await at.signedIn(async (page) => {
    await page.keyboard.press('g');
    await page.keyboard.press('w');
    await page.getByRole('heading', { name: 'Workflows' }).waitFor();
    await page.getByRole('link', { name: 'onboarding' }).first().waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL(/workflows\/wf_/);
    await page.goBack();
    await page.keyboard.press('/');
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('type')), 'search');
    await page.keyboard.press('Escape');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('Control+K');
    await page.getByLabel('Go to').fill('onboard');
    await page.getByRole('option', { name: /onboarding.*workflow/ }).first().waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'onboarding' }).waitFor();
    await page.keyboard.press('Control+K');
    await page.getByLabel('Go to').fill('dead');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Dead letters' }).waitFor();
  });
});

test('the graph is used with the keyboard', async () => {
  const { loop } = await ids();
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${loop.execution}`);
    await page.locator('.react-flow__node', { hasText: 'fetch' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'fetch' }).getByText('read 8 orders').waitFor();
  });
});

test('the theme is chosen, and stays', async () => {
  await at.signedIn(
    async (page) => {
      const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const light = await back();
      await page.getByLabel('Theme').selectOption('dark');
      assert.notEqual(await back(), light);
      await page.reload();
      await page.getByRole('heading', { name: 'Home' }).waitFor();
      assert.notEqual(await back(), light);
    },
    { colorScheme: 'light' },
  );
});

test('an approval is answered on a phone, and nothing is wider than the screen', async () => {
  const asked = await at.server.run(APPROVAL);
  const { loop, form, schedule } = await ids();
  await at.signedIn(
    async (page) => {
      for (const path of ['/', '/executions', `/executions/${loop.execution}/timeline`, `/workflows/${form.workflow}/start`, `/schedules/${schedule}`, '/administration/tokens']) {
        await at.open(page, path);
        await page.locator('h1').waitFor();
        await page.locator('main [aria-busy]').first().waitFor({ state: 'detached' });
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(width <= 390, `${path} is ${width} wide`);
      }
      await at.open(page, `/executions/${asked.execution}`);
      await page.getByRole('button', { name: 'Approve' }).click();
      await page.locator('.title .status.completed').waitFor();
    },
    { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true },
  );
});

test('a long name of a workflow widens neither lists nor filters', async () => {
  const name = `a-name-${'of-many-words-'.repeat(8)}end`;
  await at.server.run(APPROVAL.replace('name: release', `name: ${name}`));
  for (const width of [1280, 375]) {
    await at.signedIn(
      async (page) => {
        for (const path of ['/executions', '/workflows']) {
          await at.open(page, path);
          await page.getByRole('link', { name }).waitFor();
          const widest = await page.evaluate(() => document.documentElement.scrollWidth);
          assert.ok(widest <= width, `${path} is ${widest} wide`);
          if (width === 1280) assert.ok(await page.locator('main .scroll').evaluate((box) => box.scrollWidth <= box.clientWidth), `${path} has all of its columns in view`);
        }
      },
      { viewport: { width, height: 800 } },
    );
  }
});

test('on a phone, the navigation shows the current page', async () => {
  await at.signedIn(
    async (page) => {
      await at.open(page, '/administration/tokens');
      await page.getByRole('heading', { name: 'Administration' }).waitFor();
      const { left, right } = await page.getByRole('link', { name: 'Administration' }).evaluate((link) => link.getBoundingClientRect().toJSON());
      assert.ok(left >= 0 && right <= 375, `${left} to ${right}`);
    },
    { viewport: { width: 375, height: 800 } },
  );
});

test('times are relative, and exact in the zone of the viewer', async () => {
  const { loop } = await ids();
  await at.signedIn(
    async (page) => {
      await at.open(page, `/executions/${loop.execution}`);
      const time = page.locator('main time').first();
      assert.match(await time.innerText(), /ago|now/);
      assert.match(await time.getAttribute('title'), /GMT\+9|JST/);
    },
    { timezoneId: 'Asia/Tokyo' },
  );
});

test('an unknown address and a missing execution say what to do', async () => {
  await at.signedIn(
    async (page) => {
      await at.open(page, '/nowhere');
      await page.getByText('There is no such page.').waitFor();
      await at.open(page, '/executions/exec_00000000000000000000000000000000');
      await page.getByRole('heading', { name: 'There is no such execution' }).waitFor();
      await page.getByRole('link', { name: 'All executions' }).waitFor();
    },
    { mayFail: true },
  );
});

test('the first load is small, and every file is from this server under a strict policy', async () => {
  const size = (name) => gzipSync(readFileSync(new URL(`../dist/assets/${name}`, import.meta.url)), { level: 9 }).length;
  const first = size('app.js') + size('app.css');
  assert.ok(first < 150_000, `the first load has ${first} bytes`);
  assert.ok(first + size('Graph.js') < 250_000, 'with the graph');
  const index = await fetch(at.server.url, { headers: { accept: 'text/html' } });
  const policy = index.headers.get('content-security-policy');
  assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
  assert.ok(!policy.includes('unsafe'));
  assert.ok(!/<script(?![^>]*src=)|\son\w+=|<style/.test(await index.text()), 'nothing is inline');
});
