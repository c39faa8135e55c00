import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { harness } from './harness.mjs';
import { APPROVAL, Server } from './server.mjs';

const JWT = { WINDLASS_JWT_SECRET: 'a secret of at least thirty-two bytes', WINDLASS_JWT_ISSUER: 'https://harbour.example', WINDLASS_JWT_AUDIENCE: 'windlass' };
const at = harness(JWT);

test('a link signs in once, and a token by itself', async () => {
  const link = at.server.link();
  const { context, page } = await at.visit();
  await page.goto(link);
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  assert.equal(new URL(page.url()).hash, '', 'the code is not kept in the address');
  const [cookie] = await context.cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, 'Strict']);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').waitFor();
  await page.goto(link);
  await page.getByText('was used before or has expired').waitFor();
  const revoked = (await at.server.api('POST', '/tokens', { name: 'former', role: 'viewer' })).body;
  await at.server.api('DELETE', `/tokens/${revoked.id}`);
  await page.getByLabel('Token').fill(revoked.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('unknown, expired or revoked').waitFor();
  await page.getByLabel('Token').fill(at.server.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  await context.close();
});

/** A JWT as an identity provider makes it. */
function signJwt(claims) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ iss: JWT.WINDLASS_JWT_ISSUER, aud: JWT.WINDLASS_JWT_AUDIENCE, exp: Math.floor(Date.now() / 1_000) + 600, ...claims })}`;
  return `${text}.${createHmac('sha256', JWT.WINDLASS_JWT_SECRET).update(text).digest('base64url')}`;
}

test('a JWT signs in with the role that it names, and a wrong one is refused', async () => {
  const { context, page } = await at.visit();
  await at.open(page, '/sign-in');
  await page.getByLabel('Token').fill(`${signJwt({ sub: 'ann', tenant: 'default', role: 'owner' }).slice(0, -4)}AAAA`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Token').fill(signJwt({ sub: 'ann', tenant: 'default', role: 'viewer' }));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('viewer of default').waitFor();
  assert.equal(await page.getByRole('button', { name: /Start|Create/ }).count(), 0);
  await context.close();
});

test('a deep link survives the sign-in', async () => {
  const { context, page } = await at.visit();
  await at.open(page, '/executions?status=failed');
  await page.getByLabel('Token').fill(at.server.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Executions' }).waitFor();
  assert.equal(new URL(page.url()).search, '?status=failed');
  await context.close();
});

test('a revoked token ends the session, and a viewer is offered no change', async () => {
  const made = await at.server.api('POST', '/tokens', { name: 'guest', role: 'viewer' });
  const { context, page } = await at.visit();
  await at.open(page, '/sign-in');
  await page.getByLabel('Token').fill(made.body.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('viewer of default').waitFor();
  const { execution, workflow } = await at.server.run(APPROVAL);
  await at.open(page, `/executions/${execution}`);
  await page.getByText('May it go out?').waitFor();
  assert.equal(await page.getByRole('button', { name: /Approve|Cancel|Pause|Patch/ }).count(), 0);
  await at.open(page, `/workflows/${workflow}`);
  await page.locator('.step', { hasText: 'publish' }).waitFor();
  assert.equal(await page.getByRole('button', { name: /Start|Duplicate|Delete/ }).count(), 0);
  await at.server.api('DELETE', `/tokens/${made.body.id}`);
  await page.getByText('Your session has ended').waitFor();
  await page.getByLabel('Token').waitFor();
  await context.close();
});

test('the end of a token ends the page of an execution through its stream, without a poll', async () => {
  const made = await at.server.api('POST', '/tokens', { name: 'short guest', role: 'viewer' });
  const { context, page } = await at.visit();
  // No timer of the page reads anything: what remains is the stream.
  await page.addInitScript(() => {
    const real = window.setInterval.bind(window);
    window.setInterval = (work, ms, ...rest) => (ms > 1_000 ? 0 : real(work, ms, ...rest));
    window.streams = [];
    const Real = window.EventSource;
    window.EventSource = class extends Real {
      constructor(url) {
        super(url);
        window.streams.push(this);
      }
    };
  });
  await at.open(page, '/sign-in');
  await page.getByLabel('Token').fill(made.body.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('viewer of default').waitFor();
  const { execution } = await at.server.run(APPROVAL);
  let reads = 0;
  page.on('requestfinished', (request) => request.url().endsWith(`/api/v1/executions/${execution}`) && (reads += 1));
  await at.open(page, `/executions/${execution}`);
  await page.getByText('May it go out?').waitFor();
  await page.waitForFunction(() => window.streams.some(({ readyState }) => readyState === EventSource.OPEN));
  // The first read, and the one after the stream was opened.
  await at.server.until(() => reads === 2);
  await at.server.api('DELETE', `/tokens/${made.body.id}`);
  await page.getByText('Your session has ended').waitFor();
  await page.getByLabel('Token').waitFor();
  await context.close();
});

test('an operator looks at another tenant, and returns', async () => {
  const made = await at.server.api('POST', '/tenants', { name: 'second fleet' });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  await at.server.run(APPROVAL);
  await at.signedIn(async (page) => {
    await page.getByText('May it go out?').first().waitFor();
    await page.getByLabel('Tenant').selectOption({ label: 'second fleet' });
    await page.getByText('Nothing waits for an answer of yours.').waitFor();
    await page.getByText('owner of second fleet').waitFor();
    assert.ok(await page.locator('.user').evaluate((user) => [...user.children].every((part) => part.getBoundingClientRect().right <= user.getBoundingClientRect().right)), 'it is not wider than the sidebar');
    await page.getByLabel('Tenant').selectOption({ label: 'default' });
    await page.getByText('May it go out?').first().waitFor();
  });
});

test('an address names the tenant that an operator views, and a link shows the same', async () => {
  const made = await at.server.api('POST', '/tenants', { name: 'third fleet' });
  const { id } = made.body;
  const send = (path, body) => fetch(`${at.server.url}/api/v1${path}`, { method: 'POST', headers: { authorization: `Bearer ${at.server.token}`, 'content-type': 'application/yaml', 'X-Tenant-ID': id }, body });
  assert.equal((await send('/workflows', 'name: distant\nnodes: [{id: start, type: trigger}]\n')).status, 201);
  const mustBe = (url) => new URL(url).searchParams.get('tenant');
  await at.signedIn(async (page, context) => {
    await page.getByLabel('Tenant').selectOption({ label: 'third fleet' });
    await page.getByText('owner of third fleet').waitFor();
    await page.getByRole('link', { name: 'Workflows' }).click();
    await page.getByRole('link', { name: 'distant' }).click();
    await page.getByRole('heading', { name: 'distant' }).waitFor();
    assert.equal(mustBe(page.url()), id);
    assert.equal(mustBe(await page.getByRole('link', { name: 'Versions' }).evaluate((link) => link.href)), id);
    const other = await context.newPage();
    await other.goto(page.url());
    await other.getByRole('heading', { name: 'distant' }).waitFor();
    await other.getByLabel('Tenant').selectOption({ label: 'default' });
    await other.getByText('owner of default').waitFor();
    assert.equal(mustBe(other.url()), null);
    await other.goBack();
    await other.getByRole('heading', { name: 'distant' }).waitFor();
    await other.getByText('owner of third fleet').waitFor();
  });
  const { context, page } = await at.visit();
  await at.open(page, `/workflows?tenant=${id}`);
  await page.getByLabel('Token').fill(at.server.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('link', { name: 'distant' }).waitFor();
  assert.equal(mustBe(page.url()), id);
  await context.close();
});

test('the owner is one user, whose session is marked, with a link and with a token', async () => {
  const { execution } = await at.server.run(APPROVAL);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}`);
    await page.getByText('by you').waitFor();
    await at.open(page, '/administration/tokens');
    const own = page.locator('tr', { hasText: 'this session' });
    await own.waitFor();
    assert.equal(await own.count(), 1);
    let asked;
    page.on('dialog', (dialog) => {
      asked = dialog.message();
      return dialog.accept();
    });
    await own.getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('Your session has ended').waitFor();
    assert.match(asked, /session of this page/);
  }, { mayFail: true });
});

test('after a kill of the server the page shows the truth without a reload, in two tabs', async () => {
  const { execution } = await at.server.run(APPROVAL);
  await at.signedIn(
    async (page, context) => {
      const other = await context.newPage();
      for (const tab of [page, other]) {
        await at.open(tab, `/executions/${execution}`);
        await tab.locator('.title .status.paused').waitFor();
      }
      await at.server.kill();
      await at.server.open();
      const done = await at.server.api('POST', `/executions/${execution}/actions/ask/complete`, { outcome: 'Succeeded' });
      assert.ok(done.status < 300, JSON.stringify(done.body));
      for (const tab of [page, other]) await tab.locator('.title .status.completed').waitFor();
    },
    // The browser itself reports requests without a response.
    { mayFail: true },
  );
});

test('other sites cannot use the session', async () => {
  const code = new URL(at.server.link()).hash.slice(1);
  const signIn = await fetch(`${at.server.url}/api/v1/session`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ code }) });
  const cookie = signIn.headers.get('set-cookie').split(';')[0];
  const send = async (method, headers) => (await fetch(`${at.server.url}/api/v1/${method === 'POST' ? 'session/link' : 'me'}`, { method, headers: { cookie, ...headers } })).status;
  assert.equal(await send('GET', { 'sec-fetch-site': 'same-origin' }), 200);
  assert.equal(await send('POST', { 'sec-fetch-site': 'same-origin' }), 201);
  assert.equal(await send('GET', { 'sec-fetch-site': 'cross-site' }), 401);
  assert.equal(await send('POST', { 'sec-fetch-site': 'same-site' }), 401);
  assert.equal(await send('POST', { origin: 'http://127.0.0.1:1' }), 401);
});

test('an address with a tenant that the user may not view shows the own one, and names it no longer', async () => {
  const made = await at.server.api('POST', '/tokens', { name: 'reader', role: 'viewer' });
  const { context, page } = await at.visit({}, true);
  await at.open(page, '/workflows?tenant=ten_00000000000000000000000000000000');
  await page.getByLabel('Token').fill(made.body.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Workflows' }).waitFor();
  await page.waitForURL((url) => !url.search.includes('tenant'));
  await page.getByText('viewer of default').waitFor();
  await context.close();
});

test('servers at several ports of a host keep their own sessions', async () => {
  const other = await Server.start();
  try {
    const { context, page, wrong } = await at.visit();
    await page.goto(at.server.link());
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    const tab = await context.newPage();
    await tab.goto(other.link());
    await tab.getByRole('heading', { name: 'Home' }).waitFor();
    const names = (await context.cookies()).map(({ name }) => name).sort();
    assert.deepEqual(names, [at.server.port, other.port].map((port) => `windlass_session_${port}`).sort());
    await page.reload();
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    await tab.getByRole('button', { name: 'Sign out' }).click();
    await tab.getByLabel('Token').waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    assert.deepEqual(wrong, []);
    await context.close();
  } finally {
    await other.close();
  }
});

test('a token of a worker is refused with the reason', async () => {
  const { body } = await at.server.api('POST', '/tokens', { name: 'crane', role: 'worker', group: 'cranes' });
  const { context, page } = await at.visit({}, true);
  await at.open(page, '/sign-in');
  await page.getByLabel('Token').fill(body.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').getByText('the role `worker` may not read what the page shows').waitFor();
  assert.deepEqual(await context.cookies(), []);
  await context.close();
});

test('a session that may not read the page leads to another sign-in', async () => {
  await at.signedIn(
    async (page, context) => {
      await page.route('**/api/v1/me', (route) => route.fulfill({ status: 403, json: { error: { code: 'PERMISSION_DENIED', message: 'you may not read this' } } }));
      await page.reload();
      await page.getByRole('alert').getByText('you may not read this').waitFor();
      await page.getByRole('button', { name: 'Sign in as another user' }).click();
      await page.getByLabel('Token').waitFor();
      assert.deepEqual(await context.cookies(), []);
    },
    { mayFail: true },
  );
});

test('a link replaces the session of another user only after a question', async () => {
  const guest = (await at.server.api('POST', '/tokens', { name: 'guest', role: 'viewer' })).body;
  const { context, page, wrong } = await at.visit();
  await at.open(page, '/sign-in');
  await page.getByLabel('Token').fill(guest.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('viewer of default').waitFor();
  const link = at.server.link();
  await page.goto(link);
  const question = page.getByRole('alertdialog', { name: 'Replace your session?' });
  await question.getByText(guest.id).first().waitFor();
  await question.getByText('(owner of default)').waitFor();
  await question.getByRole('link', { name: /Stay signed in as/ }).click();
  await page.getByText('viewer of default').waitFor();
  await page.goto(link);
  await question.getByRole('button', { name: /Sign in as/ }).click();
  await page.getByText('owner of').waitFor();
  // A link of the same user asks nothing.
  await page.goto(at.server.link());
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  assert.deepEqual(wrong, []);
  await context.close();
});
