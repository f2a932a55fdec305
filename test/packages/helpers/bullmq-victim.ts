/**
 * A worker that takes a job and never finishes it, in a process of its own, to be killed.
 * Arguments: the server's URL, the queue's name, and whether its client is coalesced.
 */
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { coalesce } from 'ioredis-coalesce';

const [url, queueName, coalesced] = process.argv.slice(2);
if (!url || !queueName || !coalesced) {
  throw new Error(`expected a URL, a queue and true or false, got ${process.argv.slice(2).join(' ')}`);
}
const client = new Redis(url, { maxRetriesPerRequest: null });
const connection = coalesced === 'true' ? coalesce(client) : client;
new Worker(
  queueName,
  () => {
    console.log('busy');
    return new Promise(() => {});
  },
  // How often workers look for lost jobs is kept in Redis, for as long as the last one who looked said.
  { connection, lockDuration: 1_000, stalledInterval: 200 },
);
