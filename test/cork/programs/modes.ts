/** Prints the modes that two clients run in. */
import { Redis } from 'ioredis';
import { coalesce } from 'ioredis-coalesce/coalesce';

const url = process.argv[2] as string;
const clients = [coalesce(new Redis(url)), coalesce(new Redis(url), { maxPending: 5 })];
await Promise.all(clients.map((client) => client.echo('a')));
console.log(...clients.map(({ coalescer }) => coalescer.stats().mode));
for (const client of clients) client.disconnect();
