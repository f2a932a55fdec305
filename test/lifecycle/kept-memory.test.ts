/** What a request or a copy of the package held is freed when it is over, whatever goes on beside it. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { it } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import { ioredis6 } from '../helpers/hosts.js';
import { redisUrl } from '../helpers/redis.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

it('commandTimeout: the context of a request is freed while other requests go on', async () => {
  await expectAsPlain(async (kind) => {
    const client = await connectAs(kind, ioredis6, redisUrl(), { commandTimeout: 30_000 });
    const storage = new AsyncLocalStorage<object>();
    const handle = async () => {
      const request = { body: 'x' };
      await storage.run(request, async () => {
        for (let step = 0; step < 3; step += 1) await client.get('k');
      });
      return new WeakRef(request);
    };
    const request = await handle();
    // Each command is issued in the turn that brings the reply to the one before: the timer is never idle.
    for (const end = performance.now() + 100; performance.now() < end; ) await client.get('k');
    collectGarbage();
    return { freed: request.deref() === undefined };
  });
});
