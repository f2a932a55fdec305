import { describe, expect, it } from 'vitest';
import { cold } from '../helpers/cold.js';
import { ioredis6 } from '../helpers/hosts.js';
import { expectSame, type Scenario, scenario, startServerOfScenes } from '../helpers/lifecycle/scene.js';

startServerOfScenes();

/** The comparison that all of this folder relies on can fail. */
describe('the comparison of a plain client with a coalesced one', () => {
  const DIFFERENCES: Readonly<Record<string, Scenario>> = {
    'a value': async ({ ready, track, kind }) => {
      const client = await ready();
      await track('echo', client.echo(kind));
    },
    'the class of an error': async ({ ready, track, kind }) => {
      const client = await ready();
      await client.echo('fast');
      await track('reply', Promise.reject(kind === 'plain' ? new TypeError('no') : new RangeError('no')));
    },
    'an event more': async ({ ready, kind }) => {
      const client = await ready();
      await client.echo('fast');
      if (kind === 'coalesced') client.emit('close');
    },
    'the order of settling': async ({ ready, track, kind }) => {
      const client = await ready();
      const [first, second] = [client.echo('1'), client.echo('2')];
      await Promise.all([track('1', kind === 'plain' ? first : second.then(() => first)), track('2', second)]);
    },
    'data left behind': async ({ ready, track, kind }) => {
      const client = await ready();
      await track('set', client.set('key', 'v', 'NX'));
      if (kind === 'coalesced') await client.append('key', '!');
    },
    'nothing fast': async ({ ready, track }) => {
      const client = await ready();
      await track('cold', cold(client, 'ECHO', 'x'));
    },
    'a promise left open': scenario({ open: 1 }, async ({ ready, track, kind }) => {
      const client = await ready();
      await client.echo('fast');
      void track('reply', kind === 'plain' ? new Promise(() => {}) : Promise.resolve());
    }),
  };

  it.each(Object.keys(DIFFERENCES))('finds %s', async (name) => {
    await expect(expectSame(ioredis6, DIFFERENCES[name] as Scenario)).rejects.toThrow();
  });
});
