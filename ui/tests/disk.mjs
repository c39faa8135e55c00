// With PAGE_FROM_DISK, tests use the files of ui/dist instead of those in the binary, which then need not be built again.
import { readFileSync } from 'node:fs';

export async function serveFromDisk(context) {
  if (process.env.PAGE_FROM_DISK === undefined) return;
  await context.route('**/assets/*', async (route) => {
    const name = new URL(route.request().url()).pathname.split('/').pop();
    const body = readFileSync(new URL(`../dist/assets/${name}`, import.meta.url));
    // A page that was closed in the meantime needs no response.
    await route.fetch().then((response) => route.fulfill({ response, body })).catch(() => undefined);
  });
}
