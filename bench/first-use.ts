/**
 * What the first client of a process costs: CPU from `new Redis()` to the answer of `quit()`, with a `get` between,
 * both packages loaded before. Plain and coalesced in turn, a process each, of the built package.
 * `npm run build:code && npx tsx bench/first-use.ts` prints a table and writes bench/first-use.json.
 */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { startRedis } from '../tools/redis-server.js';

const run = promisify(execFile);
const ROUNDS = 21;
const WAYS = ['plain', 'coalesced'] as const;
const PACKAGE = fileURLToPath(new URL('../dist/coalesce.cjs', import.meta.url));

const PROGRAM = `
  const [, url, way, path] = process.argv;
  const { Redis } = require('ioredis');
  const { coalesce } = require(path);
  (async () => {
    const before = process.cpuUsage();
    const redis = new Redis(url);
    if (way === 'coalesced') coalesce(redis);
    await redis.get('key');
    await redis.quit();
    const { user, system } = process.cpuUsage(before);
    console.log(JSON.stringify([(user + system) / 1_000, process.version]));
  })();`;

/** @param node - the Node to measure. @default the one that runs this */
const { values } = parseArgs({ options: { node: { type: 'string', default: process.execPath } } });
const server = await startRedis();
const cpuMs: Record<(typeof WAYS)[number], number[]> = { plain: [], coalesced: [] };
let node = '';
// The first round fills the caches of files.
for (let round = 0; round <= ROUNDS; round += 1) {
  for (const way of WAYS) {
    const { stdout } = await run(values.node, ['-e', PROGRAM, server.url, way, PACKAGE], {
      cwd: fileURLToPath(new URL('..', import.meta.url)),
    });
    const [ms, version] = JSON.parse(stdout) as [number, string];
    node = version;
    if (round > 0) cpuMs[way].push(ms);
  }
}
await server.stop();
const median = (list: number[]) => list.toSorted((a, b) => a - b)[list.length >> 1] as number;
const more = cpuMs.coalesced.map((ms, round) => ms - (cpuMs.plain[round] as number));
const results = {
  plainMs: median(cpuMs.plain),
  coalescedMs: median(cpuMs.coalesced),
  moreMs: Number(median(more).toFixed(1)),
};
const settings = { node, machine: `${cpus().length} × ${cpus()[0]?.model}`, rounds: ROUNDS };
writeFileSync(new URL('first-use.json', import.meta.url), `${JSON.stringify({ settings, results }, null, 2)}\n`);
console.table([results]);
