import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { RedisServer } from '../../tools/redis-server.js';
import { HOSTS, ready } from '../helpers/hosts.js';
import { startServer } from '../helpers/redis.js';

let server: RedisServer;

beforeAll(async () => {
  server = await startServer({ args: ['--requirepass', 'a password'] });
});

afterAll(() => server?.stop());

describe.each(HOSTS)('$name: the handshake', (host) => {
  it('is written command by command, as a plain client does, whatever the schedule is', async () => {
    const schedule = vi.fn((flush: () => void) => void setImmediate(flush));
    const client = host.createCoalesced(server.url, { password: 'a password' }, { schedule });
    await ready(client);
    expect(schedule).not.toHaveBeenCalled();
    expect(client.coalescer.stats()).toMatchObject({ batches: 0, commands: 0 });
    await client.set('key', 'value');
    expect(schedule).toHaveBeenCalledOnce();
    expect(client.coalescer.stats()).toMatchObject({ batches: 1, commands: 1 });
  });
});
