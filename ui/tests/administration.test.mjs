import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { harness } from './harness.mjs';

const at = harness();

test('a token is created, shown once, and revoked', async () => {
  await at.signedIn(async (page) => {
    page.on('dialog', (dialog) => dialog.accept());
    await at.open(page, '/administration/tokens');
    await page.getByLabel('Name').fill('deploys');
    await page.getByLabel('Role', { exact: true }).selectOption('member');
    await page.getByLabel('Roles for approvals').fill('captain');
    await page.getByRole('button', { name: 'Create' }).click();
    const token = await page.getByRole('status').locator('code').innerText();
    const me = await at.server.api('GET', '/me', undefined, token);
    assert.deepEqual([me.body.role, me.body.roles], ['member', ['captain']]);
    await page.locator('tr', { hasText: 'deploys' }).getByRole('button', { name: 'Revoke' }).click();
    await page.locator('tr', { hasText: 'deploys' }).waitFor({ state: 'detached' });
    assert.equal((await at.server.api('GET', '/me', undefined, token)).status, 401);
  });
});

test('limits of a tenant are changed', async () => {
  await at.signedIn(async (page) => {
    await at.open(page, '/administration/tenants');
    await page.getByLabel('Name of the tenant').fill('fleet');
    await page.getByRole('button', { name: 'Create' }).click();
    const fleet = page.getByRole('region', { name: 'fleet' });
    await fleet.getByText('may not run programs').waitFor();
    await fleet.getByRole('button', { name: 'Change …' }).click();
    await page.getByLabel('Open executions').fill('7');
    await page.getByLabel('Programs').selectOption('allowed');
    await page.getByRole('button', { name: 'Save' }).click();
    await fleet.getByText('Open executions: 7').waitFor();
    await fleet.getByText('may run programs on the server').waitFor();
  });
});

test('secrets are listed by name, and never shown', async () => {
  await at.signedIn(async (page) => {
    page.on('dialog', (dialog) => dialog.accept());
    await at.open(page, '/administration/secrets');
    await page.getByLabel('Name').fill('harbour-key');
    await page.getByLabel('Value').fill('a-very-secret-value');
    await page.getByRole('button', { name: 'Store' }).click();
    await page.getByText('harbour-key').waitFor();
    assert.ok(!(await page.content()).includes('a-very-secret-value'));
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('There is no secret.').waitFor();
  });
});

test('a webhook that failed is sent again', async (context) => {
  let status = 410;
  const hook = createServer((_, answer) => answer.writeHead(status).end()).listen(0, '127.0.0.1');
  context.after(() => hook.close());
  await new Promise((ready) => hook.once('listening', ready));
  const { body } = await at.server.api('POST', '/workflows', 'name: hooked\nnodes: [{id: a, type: trigger}]\n');
  const options = { webhookUrl: `http://127.0.0.1:${hook.address().port}/`, webhookEvents: ['execution.completed'] };
  const started = await at.server.api('POST', `/workflows/${body.id}/execute`, { options });
  assert.equal(started.status, 202, JSON.stringify(started.body));
  await at.signedIn(async (page) => {
    await at.open(page, '/administration/webhooks');
    await page.locator('tr', { hasText: 'execution.completed' }).locator('.status.given_up').waitFor();
    status = 200;
    await page.getByRole('button', { name: 'Send again' }).click();
    await page.locator('tr', { hasText: 'execution.completed' }).locator('.status.delivered').waitFor();
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText(/^whsec_/).waitFor();
  });
});

test('a sandbox is registered, and set ready', async () => {
  await at.signedIn(async (page) => {
    page.on('dialog', (dialog) => dialog.accept());
    await at.open(page, '/administration/environments');
    await page.getByLabel('Name of the target').fill('pr-7');
    await page.getByLabel('Cluster of the target').fill('local');
    await page.getByRole('button', { name: 'Register' }).click();
    const row = page.getByRole('region', { name: 'Sandboxes' }).locator('tr', { hasText: 'pr-7' });
    await row.locator('.status.waiting').waitFor();
    await row.getByRole('button', { name: 'Set ready' }).click();
    await row.getByRole('button', { name: 'Set not ready' }).waitFor();
    const { body } = await at.server.api('GET', '/sandboxes/pr-7');
    assert.deepEqual([body.ready, body.cluster], [true, 'local']);
    await row.getByRole('button', { name: 'Delete' }).click();
    await row.waitFor({ state: 'detached' });
  });
});

test('groups of workers, quarantine and the audit log are shown', async () => {
  await at.signedIn(async (page) => {
    page.on('dialog', (dialog) => dialog.accept());
    await at.open(page, '/administration/workers');
    await page.getByText(/Slots: \d+ of \d+ in use/).waitFor();
    await page.getByLabel('Name of the group').fill('dock');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.locator('tr', { hasText: 'dock' }).waitFor();
    await page.getByRole('link', { name: 'Quarantine' }).click();
    await page.getByText('No execution is quarantined.').waitFor();
    await page.getByRole('link', { name: 'Audit log' }).click();
    await page.locator('tr', { hasText: 'dock' }).waitFor();
    await page.getByLabel('action').fill('no.such.action');
    await page.getByText('No entry matches.').waitFor();
  });
});
