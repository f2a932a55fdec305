/** What must not happen, if it does: an error within the reader leaves the replies out of step (invariant 3). */
import { afterEach, expect, it, vi } from 'vitest';
import { ReplyDecoder } from '../../src/resp/decoder.js';
import { connectAs } from '../helpers/beside.js';
import { HOSTS, outcomes } from '../helpers/hosts.js';
import { redisUrl } from '../helpers/redis.js';

afterEach(() => {
  vi.restoreAllMocks();
});

it.each(HOSTS)('$name: the connection ends, and the commands are sent again on the next one', async (host) => {
  const client = await connectAs('coalesced', host, redisUrl(), { retryStrategy: () => 5 });
  const errors: unknown[] = [];
  client.on('error', (error) => errors.push(error));
  const failure = new Error('thrown within the reader');
  const decode = vi.spyOn(ReplyDecoder.prototype, 'decode').mockImplementationOnce(() => {
    throw failure;
  });
  const texts = ['a', 'b', 'c', 'd'];
  const replies = await outcomes(texts.map((text) => client.echo(text)));
  expect(decode).toHaveBeenCalled();
  expect(replies).toEqual(texts.map((value) => ({ value })));
  expect(errors).toEqual([failure]);
});
