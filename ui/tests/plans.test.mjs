import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fillPlans, GREET, SMOKE } from './demo.mjs';
import { checkAccess, harness } from './harness.mjs';

const at = harness();
let filled;
const ids = () => (filled ??= fillPlans(at.server));

const settled = async (page) => {
  await page.locator('h1').waitFor();
  await page.locator('main [aria-busy]').first().waitFor({ state: 'detached' });
};

test('plans are listed with their newest execution, found with keys, and an unknown one says so', async () => {
  const { plan, execution } = await ids();
  await at.signedIn(
    async (page) => {
      await page.keyboard.press('g');
      await page.keyboard.press('p');
      await page.getByRole('heading', { name: 'Plans' }).waitFor();
      const row = page.locator('tr', { hasText: 'Smoke test of a sandbox' });
      await row.getByText('box*, level, token').waitFor();
      assert.equal(await row.locator('td').nth(3).innerText(), '2');
      await row.locator('.status.completed').waitFor();
      assert.equal(await row.getByRole('link', { name: /ago|now/ }).getAttribute('href'), `/executions/${execution}/plan`);
      await page.keyboard.press('/');
      await page.keyboard.type('no such plan');
      await page.getByText('No plan matches.').waitFor();
      await page.getByLabel('Search plans').fill('probe');
      await page.locator('tbody tr').nth(1).waitFor({ state: 'detached' });
      await page.getByRole('heading', { name: 'Plans' }).click();
      await page.keyboard.press('j');
      await page.keyboard.press('Enter');
      await page.waitForURL(`${at.server.url}/plans/${plan}`);
      await at.open(page, `/plans/pl_${'0'.repeat(32)}`);
      await page.getByRole('heading', { name: 'There is no such plan' }).waitFor();
      await page.getByRole('link', { name: 'All plans' }).waitFor();
    },
    { mayFail: true },
  );
});

test('a plan shows its graph, conditions, routing, parameters, outputs and executions', async () => {
  const { plan, broken, failed } = await ids();
  await at.signedIn(async (page) => {
    // A link to the workflow behind a plan leads to the plan.
    await at.open(page, `/workflows/${plan.replace('pl_', 'wf_')}`);
    await page.waitForURL(`${at.server.url}/plans/${plan}`);
    await page.locator('.step', { hasText: 'in sandbox params.box' }).waitFor();
    await page.locator('.react-flow__node', { hasText: 'if not ok' }).focus();
    await page.keyboard.press('Enter');
    const step = page.getByRole('region', { name: 'alert', exact: true });
    await step.getByText('steps.probe.outputs.report.ok').waitFor();
    await step.getByText('not ok', { exact: true }).waitFor();
    assert.match(page.url(), /step=alert/);
    await at.open(page, `/plans/${plan}?step=probe`);
    await page.getByRole('region', { name: 'probe', exact: true }).getByText('sandboxRef: params.box').waitFor();
    const cells = (region, name) => page.getByRole('region', { name: region, exact: true }).locator('tr', { hasText: name }).first().locator('td').allInnerTexts();
    assert.deepEqual((await cells('Parameters', 'level')).slice(0, 4), ['level', 'no', 'quick', '{"type":"string","enum":["quick","full"]}']);
    assert.deepEqual((await cells('Parameters', 'box')).slice(0, 4), ['box', 'yes', '', 'text']);
    assert.deepEqual(await page.getByRole('region', { name: 'Outputs', exact: true }).last().locator('tr', { hasText: 'report' }).locator('td').allInnerTexts(), ['report', 'steps.probe.outputs.report', '{"type":"object"}']);
    await at.open(page, `/plans/${broken}`);
    const executions = page.getByRole('region', { name: 'Executions' });
    await executions.locator('.status.failed').waitFor();
    await executions.getByLabel('Phase').selectOption('completed');
    await executions.getByText('No execution is completed.').waitFor();
    await executions.getByLabel('Phase').selectOption('failed');
    await executions.getByRole('link', { name: failed.slice(-8) }).click();
    await page.waitForURL(`${at.server.url}/executions/${failed}/plan`);
    await at.open(page, `/plans/${plan}/document`);
    await page.getByText('Smoke test of a sandbox').nth(1).waitFor();
  });
});

test('a form from the schemas starts a plan with a secret, and its commands do the same', async () => {
  const { plan } = await ids();
  await at.signedIn(
    async (page) => {
      await at.open(page, `/plans/${plan}/start`);
      const start = page.getByRole('button', { name: 'Start', exact: true });
      await page.getByText('determined by the plan: dock').waitFor();
      assert.ok(await start.isDisabled(), 'a required parameter is missing');
      await page.getByLabel('Sandbox').fill('pr-7');
      assert.deepEqual(await page.getByLabel('level', { exact: true }).locator('option').allInnerTexts(), ['–', 'quick', 'full']);
      await page.getByLabel('level', { exact: true }).selectOption('full');
      await page.getByLabel('token is a secret').check();
      await page.getByLabel('token (required)').fill('probe-token');
      await page.getByRole('button', { name: 'Copy as a command' }).click();
      const command = await page.evaluate(() => navigator.clipboard.readText());
      assert.equal(command, `windlass plans run ${plan} --param 'box=pr-7' --param 'level=full' --param-secret 'token=probe-token'`);
      const words = command.replaceAll("'", '').split(' ').slice(1);
      const same = at.server.command(...words, '--json');
      assert.equal(same.code, 0, same.stderr);
      await page.getByRole('button', { name: 'Copy as curl' }).click();
      const curl = await page.evaluate(() => navigator.clipboard.readText());
      assert.deepEqual(JSON.parse(/-d '(.*)' http/.exec(curl)[1]), { spec: { planID: plan, params: { box: 'pr-7', level: 'full' }, secrets: { token: 'probe-token' } } });
      await start.click();
      await page.waitForURL(/executions\/exec_.*\/plan$/);
      const id = new URL(page.url()).pathname.split('/')[2];
      const { body } = await at.server.api('GET', `/plan-executions/${id}`);
      assert.deepEqual([body.spec.params, body.spec.secrets], [{ box: 'pr-7', level: 'full' }, { token: 'probe-token' }]);
      assert.deepEqual(JSON.parse(same.stdout).spec.params, body.spec.params);
      await page.locator('.title .status.completed').waitFor();
      await page.getByRole('button', { name: 'Run again …' }).click();
      await page.getByRole('heading', { name: /^Run again as/ }).waitFor();
      assert.equal(await page.getByLabel('level', { exact: true }).inputValue(), 'full');
      assert.ok(await page.getByLabel('token is a secret').isChecked());
    },
    { permissions: ['clipboard-read', 'clipboard-write'] },
  );
});

test('a plan that determines no place asks for a cluster and a group, and a refusal is shown', async () => {
  await ids();
  await at.server.api('PUT', '/clusters/far', {});
  const plan = await at.server.plan('spec: {params: [{name: n, required: true, schema: {type: integer}}], steps: [{id: one, action: {script: "true"}}]}');
  await at.signedIn(
    async (page) => {
      await at.open(page, `/plans/${plan}/start`);
      await page.getByLabel('n is a secret').check();
      await page.getByLabel('n (required)').fill('no-such-secret');
      // The only group is chosen, and with it its cluster.
      await page.locator('select[id="Runner group"] option', { hasText: 'dock' }).waitFor({ state: 'attached' });
      assert.deepEqual([await page.getByLabel('Runner group').inputValue(), await page.getByLabel('Cluster').inputValue()], ['dock', 'local']);
      await page.getByRole('button', { name: 'Start', exact: true }).click();
      await page.getByRole('alert').getByText(/no-such-secret/).first().waitFor();
      assert.match(page.url(), /start$/);
    },
    // The browser reports the refusal.
    { mayFail: true },
  );
});

test('an execution of a plan is shown in its words while it waits, runs and ends, with files to download', async () => {
  await ids();
  await at.server.api('PUT', '/sandboxes/pr-8', { cluster: 'local' });
  const plan = await at.server.plan(SMOKE);
  const execution = await at.server.startPlan(plan, { params: { box: 'pr-8' }, secrets: { token: 'probe-token' } });
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/plan`);
    await page.getByRole('heading', { name: 'Smoke test of a sandbox' }).waitFor();
    const phase = page.getByRole('region', { name: 'Phase' });
    await phase.getByText('1 waiting').waitFor();
    await page.getByText('It waits until its target is ready: in sandbox params.box.').waitFor();
    await at.server.api('PUT', '/sandboxes/pr-8', { cluster: 'local', ready: true });
    await phase.locator('.status.completed', { hasText: /^✓\s*completed$/ }).waitFor();
    await phase.getByText('1 skipped').waitFor();
    const row = async (region, name) => (await page.getByRole('region', { name: region, exact: true }).locator('tr', { hasText: name }).locator('td').allInnerTexts()).join(' | ');
    assert.equal(await row('Inputs', 'box'), 'box | value | pr-8');
    assert.equal(await row('Inputs', 'level'), 'level | default | quick');
    assert.equal(await row('Inputs', 'token'), 'token | secret | secret probe-token');
    assert.match(await row('Outputs', 'report'), /^report \| \{"ok":true\} \| probe\.report/);
    assert.match(await row('Outputs', 'blob'), /^blob \| 49 KiB \| probe\.blob \| application\/octet-stream/);
    const download = page.waitForEvent('download');
    await page.getByRole('region', { name: 'Outputs', exact: true }).getByRole('link', { name: 'Download blob' }).click();
    const bytes = readFileSync(await (await download).path());
    assert.ok(bytes.length === 50_000 && bytes.every((byte) => byte === 255));
    await page.getByText('Its condition was false: not ok; ok was true.').waitFor();
    await page.getByRole('link', { name: 'probe.report' }).click();
    await page.waitForURL(/step=probe/);
    await page.getByText('probing at level quick').waitFor();
    await page.getByText('params.token').waitFor();
    assert.ok(!(await page.content()).includes('correct horse'));
    const log = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download probe.stdout.log' }).click();
    assert.equal(readFileSync(await (await log).path(), 'utf8'), 'probing at level quick\n');
  });
});

test('a file that is still uploaded, or whose upload failed, is no link', async () => {
  const { execution } = await ids();
  await at.signedIn(async (page) => {
    let artifact = { ready: false };
    await page.route(`**/plan-executions/${execution}`, async (route) => {
      const answer = await route.fetch();
      const body = await answer.json();
      Object.assign(body.status.outputs.find(({ name }) => name === 'blob'), { artifact });
      await route.fulfill({ response: answer, json: body });
    });
    await at.open(page, `/executions/${execution}/plan`);
    const row = page.getByRole('region', { name: 'Outputs', exact: true }).locator('tr', { hasText: 'blob' });
    await row.getByText('being uploaded').waitFor();
    assert.equal(await row.getByRole('link', { name: /Download/ }).count(), 0);
    artifact = { ready: false, size: 50_000, checksum: 'ff', error: 'the worker is <b>gone</b>' };
    await page.reload();
    await row.getByText('not available: the worker is <b>gone</b>').waitFor();
    assert.equal(await row.getByRole('link', { name: /Download/ }).count(), 0);
  });
});

test('a failed step of a plan shows its error, and what depends on it why it did not run', async () => {
  const { failed } = await ids();
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${failed}/plan`);
    const steps = page.getByRole('region', { name: 'Steps' });
    await steps.locator('summary', { hasText: 'unload' }).getByText('dock before it failed.').waitFor();
    const dock = steps.locator('details', { has: page.locator('strong', { hasText: /^dock$/ }) });
    await dock.locator('summary').first().click();
    await dock.locator('.problem', { hasText: 'the berth is taken' }).waitFor();
    await steps.getByRole('region', { name: 'stderr of dock' }).getByText('the berth is taken').waitFor();
  });
});

test('a running execution of a plan is cancelled', async () => {
  await ids();
  const plan = await at.server.plan('spec: {runner: dock, cluster: {pattern: local}, steps: [{id: stay, action: {script: sleep 600}}]}');
  const execution = await at.server.startPlan(plan);
  await at.signedIn(async (page) => {
    await at.open(page, `/executions/${execution}/plan`);
    await page.getByText('1 running').first().waitFor();
    await page.getByRole('button', { name: 'Cancel …' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the execution' }).click();
    await page.locator('.title .status.cancelled').waitFor();
  });
});

test('registered actions have revisions and a document, and are disabled and deleted', async () => {
  const { broken } = await ids();
  await at.server.api('PUT', '/actions/wave', GREET);
  await at.signedIn(async (page) => {
    page.on('dialog', (dialog) => dialog.accept());
    await page.keyboard.press('g');
    await page.keyboard.press('c');
    await page.locator('tr', { has: page.getByRole('link', { name: 'greet' }) }).getByText('Greets somebody').waitFor();
    await page.getByLabel('Search actions').fill('nothing like this');
    await page.getByText('No action matches.').waitFor();
    // A step of a plan leads to the revision that it froze.
    await at.open(page, `/plans/${broken}?step=hail`);
    await page.getByRole('link', { name: 'greet revision 2' }).click();
    await page.getByRole('region', { name: 'Script' }).getByText('Ahoy').waitFor();
    await page.getByRole('button', { name: 'show revision 1' }).click();
    await page.getByRole('region', { name: 'Script' }).getByText('Hello').waitFor();
    assert.match(page.url(), /actions\/greet\?revision=1$/);
    assert.deepEqual((await page.getByRole('region', { name: 'Parameters' }).locator('td').allInnerTexts()).slice(0, 2), ['who', 'yes']);
    await at.open(page, '/actions/wave');
    await page.getByRole('button', { name: 'Disable' }).click();
    await page.locator('.title .status', { hasText: 'disabled' }).waitFor();
    assert.equal((await at.server.api('GET', '/actions/wave')).body.enabled, false);
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.waitForURL(`${at.server.url}/actions`);
    await page.getByRole('link', { name: 'greet' }).waitFor();
    assert.equal(await page.locator('tr', { hasText: 'wave' }).count(), 0);
  });
});

test('empty pages of plans and actions say what to do, and a viewer is offered no change', async () => {
  const { plan } = await ids();
  const tenant = await at.server.api('POST', '/tenants', { name: 'empty fleet' });
  const token = await at.server.api('POST', '/tokens', { name: 'visitor', role: 'viewer', tenantId: tenant.body.id });
  const guest = await at.server.api('POST', '/tokens', { name: 'guest', role: 'viewer' });
  const signIn = async (page, text) => {
    await at.open(page, '/sign-in');
    await page.getByLabel('Token').fill(text);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Home' }).waitFor();
  };
  const first = await at.visit();
  await signIn(first.page, token.body.token);
  await at.open(first.page, '/plans');
  await first.page.getByText('There is no plan.').waitFor();
  await first.page.getByText('windlass plans create FILE').waitFor();
  await at.open(first.page, '/actions');
  await first.page.getByText('No action is registered.').waitFor();
  assert.deepEqual(first.wrong, []);
  await first.context.close();
  const second = await at.visit();
  await signIn(second.page, guest.body.token);
  await at.open(second.page, `/plans/${plan}`);
  await second.page.locator('.step').first().waitFor();
  assert.equal(await second.page.getByRole('link', { name: /^Start/ }).count(), 0);
  await at.open(second.page, '/actions/greet');
  await second.page.getByRole('region', { name: 'Script' }).waitFor();
  assert.equal(await second.page.getByRole('button', { name: /Disable|Delete/ }).count(), 0);
  assert.deepEqual(second.wrong, []);
  await second.context.close();
});

test('markup in names, hints, outputs and logs of plans and actions is shown as text', async () => {
  await ids();
  const markup = '<img src=x onerror="window.hit=1">';
  const plan = await at.server.plan({
    spec: {
      selectionHint: markup,
      prompt: '<script>window.hit=2</script>',
      runner: 'dock',
      cluster: { pattern: 'local' },
      params: [{ name: 'link', default: 'javascript:window.hit=3', metadata: { displayName: markup } }],
      steps: [
        {
          id: 'one',
          action: {
            params: [{ name: 'link' }],
            outputs: [{ name: 'page', metadata: { contentType: 'text/html' } }, { name: 'tree', schema: {} }],
            script: `printf '%s' '${markup}' > outputs/page; printf '{"a": "<svg onload=window.hit=4>"}' > outputs/tree.json; printf '\\033[31m<b>red</b>\\033[0m\\n'`,
          },
          args: { refs: { link: 'params.link' } },
          condition: 'link != "<i>"',
        },
      ],
      output: { page: 'steps.one.outputs.page' },
    },
  });
  await at.server.api('PUT', '/actions/hostile', { description: markup, script: markup });
  const execution = await at.server.startPlan(plan);
  assert.equal((await at.server.planEnd(execution)).phase, 'completed');
  await at.signedIn(async (page) => {
    const texts = { '/plans': markup, [`/plans/${plan}?step=one`]: 'javascript:window.hit=3', [`/plans/${plan}/start`]: markup, [`/plans/${plan}/document`]: '<script>window.hit=2</script>', [`/executions/${execution}`]: markup, '/actions': markup, '/actions/hostile': markup };
    for (const [path, text] of Object.entries(texts)) {
      await at.open(page, path);
      await page.getByText(text).first().waitFor();
    }
    await at.open(page, `/executions/${execution}/plan?step=one`);
    await page.getByText('<b>red</b>').waitFor();
    await page.getByText('<svg onload=window.hit=4>').last().waitFor();
    assert.equal(await page.locator('main img, main svg:not(.icon), main b:has-text("red"), main i').count(), 0);
    assert.equal(await page.evaluate(() => window.hit), undefined);
    assert.equal(await page.locator('a[href^="javascript:"]').count(), 0);
    // The file is a download, not a page of this origin.
    const download = page.waitForEvent('download');
    await page.getByRole('region', { name: 'Outputs', exact: true }).getByRole('link', { name: 'Download page' }).click();
    assert.equal(readFileSync(await (await download).path(), 'utf8'), markup);
  });
});

for (const colorScheme of ['light', 'dark']) {
  test(`axe finds nothing serious on the pages of plans and actions in the ${colorScheme} theme`, async () => {
    const { plan, broken, execution, failed } = await ids();
    const paths = [
      '/plans',
      `/plans/${plan}?step=probe`,
      `/plans/${plan}/start`,
      `/plans/${plan}/document`,
      `/plans/${broken}/start`,
      ...['graph?step=probe', 'plan?step=probe', 'timeline', 'steps', 'logs', 'events', 'evidence'].map((tab) => `/executions/${execution}/${tab}`),
      `/executions/${failed}/plan`,
      '/actions',
      '/actions/greet',
    ];
    await at.signedIn(
      async (page) => {
        for (const path of paths) {
          await at.open(page, path);
          await settled(page);
          await checkAccess(page, path);
        }
      },
      { colorScheme },
    );
  });
}

test('lists name a plan by its hint, and show the duration that its execution shows', async () => {
  const { execution } = await ids();
  await at.signedIn(async (page) => {
    await at.open(page, `/executions?text=${execution}`);
    const row = page.locator('tbody tr', { hasText: 'Smoke test of a sandbox' });
    await row.waitFor();
    assert.ok(!(await row.innerText()).includes('v1'), 'a plan has no versions');
    const took = await row.getByRole('cell', { name: /^[\d.]+ (ms|s)$/ }).innerText();
    await row.getByRole('link').click();
    await page.getByText(`took ${took}`).waitFor();
    await at.open(page, '/workflows');
    await page.getByRole('link', { name: 'Smoke test of a sandbox' }).first().waitFor();
  });
});
