// With PAGE_FROM_DISK, the files of ui/dist are used instead of those in the binary: for trials without a new build of the binary.
import { readFileSync } from 'node:fs';

export async function serveFromDisk(context) {
  if (process.env.PAGE_FROM_DISK === undefined) return;
  await context.route('**/assets/*', async (route) => {
    const name = new URL(route.request().url()).pathname.split('/').pop();
    const body = readFileSync(new URL(`../dist/assets/${name}`, import.meta.url));
    // A page that is closed meanwhile needs no answer.
    await route.fetch().then((response) => route.fulfill({ response, body })).catch(() => undefined);
  });
}
