// The signed-in user in several tabs, and the actions that the page offers to each role.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { harness } from './harness.mjs';
import { APPROVAL } from './server.mjs';

const at = harness();

const makeToken = async (role, more = {}) => {
  const { status, body } = await at.server.api('POST', '/tokens', { name: `a ${role}`, role, ...more });
  assert.equal(status, 201, JSON.stringify(body));
  return body.token;
};

async function signIn(page, token, path = '/sign-in') {
  await at.open(page, path);
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

test('after another user signed in in another tab, a tab forgets the former user, the tenant included', async () => {
  await at.server.api('POST', '/tenants', { name: 'second fleet' });
  await at.server.run(APPROVAL);
  const { context, page } = await at.visit({}, true);
  await page.goto(at.server.link());
  await page.getByText('May it go out?').first().waitFor();
  await page.getByLabel('Tenant').selectOption({ label: 'second fleet' });
  await page.getByText('Nothing waits for an answer of yours.').waitFor();
  await at.open(page, '/administration/tenants');
  await page.getByRole('heading', { name: 'second fleet' }).waitFor();
  const other = await context.newPage();
  await signIn(other, await makeToken('viewer'));
  await other.getByText('viewer of default').waitFor();
  // The tab notices when it is seen again, and otherwise within seconds.
  await page.evaluate(() => window.dispatchEvent(new Event('visibilitychange')));
  await page.getByText('viewer of default').waitFor();
  await page.getByText('The role viewer may not read this part of the administration.').waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').waitFor();
  await context.close();
});

test('a refused sign-out says so', async () => {
  await at.signedIn(
    async (page) => {
      await page.route('**/api/v1/session', (route) => route.fulfill({ status: 500, json: { error: { code: 'INTERNAL', message: 'the session cannot be ended' } } }));
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByRole('alert').getByText('the session cannot be ended').waitFor();
    },
    { mayFail: true },
  );
});

test('a link to sign in leads to an address of this page, with its place, and nowhere else', async () => {
  const { context, page, wrong } = await at.visit();
  await signIn(page, at.server.token, `/sign-in?to=${encodeURIComponent('/.//evil.example')}`);
  await page.getByText('There is no such page.').waitFor();
  assert.equal(new URL(page.url()).origin, at.server.url);
  await context.clearCookies();
  await signIn(page, at.server.token, `/sign-in?to=${encodeURIComponent('/executions?status=failed#content')}`);
  await page.getByRole('heading', { name: 'Executions' }).waitFor();
  assert.equal(page.url(), `${at.server.url}/executions?status=failed#content`);
  assert.deepEqual(wrong, []);
  await context.close();
});

test('forms that a role may not send are not offered, and their addresses say why', async () => {
  const { body: workflow } = await at.server.api('POST', '/workflows', 'name: resting\nnodes: [{id: a, type: trigger}]\n');
  const { body: schedule } = await at.server.api('POST', '/schedules', { name: 'yearly', schedule: { kind: 'cron', expr: '0 3 1 1 *' }, target: { kind: 'shell', command: 'true', args: [] } });
  const viewer = await at.visit();
  await signIn(viewer.page, await makeToken('viewer'));
  await viewer.page.getByText('viewer of default').waitFor();
  for (const [path, text] of [
    ['/workflows/new', 'The role viewer may not create workflows.'],
    ['/schedules/new', 'The role viewer may not create or change schedules.'],
    [`/workflows/${workflow.id}/start`, 'The role viewer may not start executions.'],
  ]) {
    await at.open(viewer.page, path);
    await viewer.page.getByText(text).waitFor();
  }
  await at.open(viewer.page, `/workflows/${workflow.id}`);
  await viewer.page.getByText('It has not run yet.').waitFor();
  assert.equal(await viewer.page.getByRole('link', { name: 'Start it' }).count(), 0);
  await viewer.context.close();
  const developer = await at.visit();
  await signIn(developer.page, await makeToken('developer'));
  await at.open(developer.page, `/schedules/${schedule.id}`);
  await developer.page.getByRole('button', { name: 'Pause' }).waitFor();
  assert.equal(await developer.page.getByRole('button', { name: 'Delete' }).count(), 0);
  await developer.context.close();
  const admin = await at.visit();
  await signIn(admin.page, await makeToken('admin'));
  await at.open(admin.page, '/administration/tokens');
  await admin.page.getByRole('region', { name: 'New token' }).waitFor();
  const roles = await admin.page.getByLabel('Role', { exact: true }).locator('option').allInnerTexts();
  assert.ok(roles.includes('admin') && !roles.includes('owner'), roles.join());
  await admin.context.close();
});

test('each role is offered the parts of the administration that it may read, with the changes that it may make', async () => {
  await at.server.api('PUT', '/secrets/tide', { value: 'a value that is long enough' });
  await at.server.api('PUT', '/sandboxes/pr-1', {});
  await at.server.api('PUT', '/runner-groups/dock', {});
  const { body: workflow } = await at.server.api('POST', '/workflows', 'name: hooked\nnodes: [{id: a, type: trigger}]\n');
  const started = await at.server.api('POST', `/workflows/${workflow.id}/execute`, { options: { async: false, webhookUrl: 'http://127.0.0.1:1/hook' } });
  assert.ok(started.status < 300, JSON.stringify(started.body));
  await at.server.until(async () => (await at.server.api('GET', '/webhook-deliveries')).body.deliveries.length > 0);
  const open = ['Webhooks', 'Workers', 'Environments'];
  const all = ['Tokens', 'Tenants', 'Secrets', ...open, 'Quarantine', 'Audit log'];
  for (const [role, tabs, offered] of [
    ['viewer', open, {}],
    ['member', open, { redeliver: true }],
    ['developer', ['Secrets', ...open], { redeliver: true, edit: true }],
    ['admin', all, { redeliver: true, edit: true, administer: true }],
  ]) {
    const { context, page, wrong } = await at.visit();
    await signIn(page, await makeToken(role));
    await page.getByText(`${role} of default`).waitFor();
    await page.getByRole('link', { name: 'Administration' }).click();
    const parts = page.getByRole('navigation', { name: 'Parts of the administration' });
    await parts.getByRole('link', { name: 'Workers' }).waitFor();
    assert.deepEqual(await parts.getByRole('link').allInnerTexts(), tabs, role);
    const count = async (name, isOffered) => assert.equal((await page.getByRole('button', { name, exact: true }).count()) > 0, isOffered ?? false, `${role}: ${name}`);
    await parts.getByRole('link', { name: 'Workers' }).click();
    await page.locator('tr', { hasText: 'dock' }).waitFor();
    for (const name of ['Create', 'Delete']) await count(name, offered.administer);
    await parts.getByRole('link', { name: 'Environments' }).click();
    await page.locator('tr', { hasText: 'pr-1' }).waitFor();
    await count('Register', offered.edit);
    await count('Set ready', offered.edit);
    await count('Delete', offered.administer);
    await parts.getByRole('link', { name: 'Webhooks' }).click();
    await page.locator('tr', { hasText: '127.0.0.1' }).first().waitFor();
    await count('Send again', offered.redeliver);
    await count('Rotate', offered.administer);
    if (offered.edit) {
      await parts.getByRole('link', { name: 'Secrets' }).click();
      await page.locator('tr', { hasText: 'tide' }).waitFor();
      for (const name of ['Store', 'Delete']) await count(name, offered.administer);
    } else {
      await at.open(page, '/administration/secrets');
      await page.getByText(`The role ${role} may not read this part of the administration.`).waitFor();
    }
    assert.deepEqual(wrong, []);
    await context.close();
  }
});

test('an approval is offered to those who may answer it, and home counts what it lists', async () => {
  const asks = (message, approvers) => `
name: ${message}
nodes:
  - {id: start, type: trigger}
  - {id: ask, type: approval, config: {message: '${message}'${approvers ? `, approvers: [${approvers}]` : ''}}}
edges: [{source: start, target: ask}]
`;
  const { execution } = await at.server.run(asks('for the captain', 'captain'));
  await at.server.run(asks('part', 'captain'));
  const parent = await at.server.run(`
name: asks-in-a-child
nodes:
  - {id: start, type: trigger}
  - {id: sub, type: workflow, config: {workflowId: part}}
edges: [{source: start, target: sub}]
`);
  for (const [roles, isAsked] of [[[], false], [['captain'], true]]) {
    const { context, page } = await at.visit();
    await signIn(page, await makeToken('member', roles.length > 0 ? { roles } : {}));
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    const tile = page.getByRole('link', { name: /waiting for you/ });
    await page.waitForFunction(() => /\d/.test(document.querySelector('.tile')?.textContent ?? ''));
    const listed = await page.getByRole('region', { name: 'Waiting for you' }).getByRole('group').count();
    const count = Number.parseInt(await tile.innerText(), 10);
    assert.equal(listed, count, 'the number is that of the forms');
    assert.equal(await page.getByText('for the captain').count() > 0, isAsked);
    for (const id of [execution, parent.execution]) {
      await at.open(page, `/executions/${id}`);
      const waiting = page.getByRole('group', { name: 'Waiting for people' });
      await waiting.getByText('for captain').first().waitFor();
      // The time is known in the execution that asks.
      assert.equal(await waiting.getByText('asked').count(), id === execution ? 1 : 0);
      if (isAsked) await page.getByRole('button', { name: 'Approve' }).waitFor();
      else assert.equal(await page.getByRole('button', { name: 'Approve' }).count(), 0);
    }
    await context.close();
  }
});
