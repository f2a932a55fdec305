/**
 * Prints the functions of the host's packages that commands call on a plain client and not on a coalesced one, by V8's
 * precise coverage; and for each whether the proof of `coalesce()` has called it.
 */
import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { setImmediate } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { SCRIPTS, useEveryWay } from '../../helpers/every-way.js';

const [host, url] = process.argv.slice(2) as [string, string];
const { Redis: HostClass } = (await import(host)) as { Redis: new (url: string, options: object) => Redis };
const create = async () => {
  const client = new HostClass(url, { keyPrefix: 'skipped:', scripts: SCRIPTS });
  await client.ping();
  return client;
};

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

const [plain, unused] = [await create(), await create()];
const ofPlain = await calledBy(() => useEveryWay(plain));
const ofProof = await calledBy(() => coalesce(unused));
await useEveryWay(unused);
const ofFast = await calledBy(() => useEveryWay(unused));
const skipped = [...ofPlain].filter(([place]) => !ofFast.has(place));
/** A function's own name, and those of the functions around it. */
const namesOf = ({ file, start, end }: Called) =>
  [...ofPlain.values()].filter((of) => of.file === file && of.start <= start && of.end >= end).map(({ name }) => name);
const { fastCommands, commands } = coalesce(unused).coalescer.stats();
console.log(
  JSON.stringify({
    fastShare: fastCommands / commands,
    skipped: skipped.map(([place, called]) => ({
      file: called.file,
      names: namesOf(called),
      isProven: ofProof.has(place),
    })),
  }),
);
for (const client of [plain, unused]) client.disconnect();
session.disconnect();

interface Called {
  readonly name: string;
  readonly file: string;
  readonly start: number;
  readonly end: number;
}

/** By file and offset. */
async function calledBy(work: () => unknown): Promise<Map<string, Called>> {
  // Taking the coverage sets the counts to zero.
  await session.post('Profiler.takePreciseCoverage');
  await work();
  await setImmediate();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  return new Map(result.flatMap((script) => calledOf(script)));
}

function calledOf({ url: path, functions }: Profiler.ScriptCoverage): [place: string, called: Called][] {
  const file = /node_modules\/(?!\.programs)(.+)$/.exec(path)?.[1];
  if (file === undefined) return [];
  return functions.flatMap(({ functionName, ranges: [range] }) => {
    if (range === undefined || range.count === 0) return [];
    const { startOffset: start, endOffset: end } = range;
    return [[`${file}:${start}`, { name: functionName || '(anonymous)', file, start, end }]];
  });
}
