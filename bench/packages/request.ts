/** A request as services have it: seven commands in three round trips, each user's with values of its own. */

import type { Redis } from 'ioredis';
import type { BenchClient } from '../variants/clients.js';

export const USERS = 1000;
const SESSION_SECONDS = 3600;
const TEXT = 'coalesce'.repeat(12);
const FLAGS = ['beta', 'dark', 'fast', 'safe'];

/** Of one length, so that all answers are. */
export function userOf(index: number): string {
  return `${index % USERS}`.padStart(4, '0');
}

export async function writeUsers(redis: Pick<Redis, 'set' | 'hset' | 'sadd'>, prefix: string): Promise<void> {
  for (let index = 0; index < USERS; index += 1) {
    const user = userOf(index);
    const at = `${prefix}user:${user}`;
    await Promise.all([
      redis.set(`${prefix}session:s${user}`, user),
      redis.hset(`${at}:profile`, { id: user, name: `name ${user}`, lang: 'en', text: TEXT }),
      redis.hset(`${at}:plan`, { name: `plan ${user}`, seats: '5' }),
      redis.sadd(`${at}:flags`, ...FLAGS),
      redis.set(`${at}:cart`, `cart ${user} ${TEXT}`),
      redis.set(`${at}:settings`, `settings ${user} ${TEXT}`),
    ]);
  }
}

/** What the service answers; an error where a value is missing, or of another user. */
export async function answerRequest(client: BenchClient, prefix: string, user: string): Promise<object> {
  const session = `${prefix}session:s${user}`;
  const id = await client.get(session);
  const at = `${prefix}user:${id}`;
  const [profile, plan, flags, cart, settings] = await Promise.all([
    client.hgetall!(`${at}:profile`) as Promise<Readonly<Record<string, string>>>,
    client.hget!(`${at}:plan`, 'name'),
    client.smembers!(`${at}:flags`) as Promise<readonly string[]>,
    client.get(`${at}:cart`) as Promise<string>,
    client.get(`${at}:settings`) as Promise<string>,
  ]);
  const isWhole =
    plan === `plan ${user}` && cart.startsWith(`cart ${user} `) && settings.startsWith(`settings ${user} `);
  if (profile.id !== user || flags.length !== FLAGS.length || !isWhole) {
    throw new Error(
      `expected the values of user ${user}, got ${JSON.stringify({ profile, plan, flags, cart, settings })}`,
    );
  }
  await client.setFor!(session, user, SESSION_SECONDS);
  return { id, name: profile.name, plan, flags: flags.length, cart, settings };
}
