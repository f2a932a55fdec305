import { join } from 'node:path';
import type { Benchmark } from './benchmarks/benchmark.js';
import { GROUPS, select } from './benchmarks/index.js';
import { printResults } from './report/terminal.js';
import { cleanly } from './suite/cleanup.js';
import { compareWith } from './suite/compare.js';
import { evaluate } from './suite/evaluate.js';
import { type BenchOptions, HELP, parseOptions } from './suite/options.js';
import { samplesOf, secondsOf } from './suite/pace.js';
import { type GroupResult, writeResults } from './suite/results.js';
import { openRig, type Rig } from './suite/rig.js';
import { Runner } from './suite/runner.js';
import { readSettings, type Settings } from './suite/settings.js';
import { bringSetup, type Setup } from './suite/setup.js';
import { areSessionsGrouped, keepAwake } from './suite/spinner.js';

const GROUPED =
  'The kernel shares the processors out between sessions (autogroup): kernel.sched_autogroup_enabled=0 makes the figures steadier.';
const SMOKE = 'A smoke run: everything ran and values are right; the figures mean nothing.';

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  if (options === undefined) {
    console.log(HELP);
    return;
  }
  const setup = await bringSetup(options.setup);
  const stop = options.awake ? keepAwake() : () => {};
  await run(options, setup).finally(stop);
}

async function run(options: BenchOptions, setup: Setup): Promise<void> {
  if (options.compare !== undefined) {
    console.log(await compareWith(options.compare, options, setup));
    return;
  }
  const results = await bench(options, setup);
  const benchmarks = results.flatMap((one) => one.benchmarks);
  if (options.check && evaluate(benchmarks).some(({ met }) => !met)) process.exitCode = 1;
}

/**
 * Leaves nothing behind however it ends: no keys, no processes. Each group's results are kept as soon as they are
 * there.
 */
function bench({ asked, awake, named, out }: BenchOptions, setup: Setup): Promise<GroupResult[]> {
  const chosen = asked.smoke ? select(named).flatMap(shortened) : select(named);
  return cleanly(async (cleanup) => {
    const samples = chosen.reduce((sum, one) => sum + samplesOf(one, asked), 0);
    const seconds = chosen.reduce((sum, one) => sum + secondsOf(one, asked), 0);
    if (!asked.smoke) console.error(`At most about ${Math.ceil(seconds / 60)} minutes.`);
    const rig = await openRig(cleanup, { asked, samples, nodePath: setup.nodePath });
    const settings = await readSettings({ server: rig.server, awake, node: setup.node });
    const runner = new Runner(rig);
    await cleanup.add(() => {
      rig.kill();
      return runner.leave();
    });
    const results: GroupResult[] = [];
    for (const group of Object.keys(GROUPS)) {
      const benchmarks = chosen.filter(({ id }) => GROUPS[group]!.some((one) => one.id === id));
      if (benchmarks.length === 0) continue;
      if (asked.smoke) rig.notes.add(SMOKE);
      if (awake && areSessionsGrouped()) rig.notes.add(GROUPED);
      const result = await runGroup(group, benchmarks, runner, rig, settings);
      printResults(result);
      results.push(result);
      // A setup that is not the standard one has a folder of its own.
      if (out !== undefined) console.log(`Written to ${await writeResults(join(out, setup.name ?? ''), result)}.`);
    }
    return results;
  });
}

async function runGroup(
  group: string,
  chosen: readonly Benchmark[],
  runner: Runner,
  { notes }: Rig,
  settings: Settings,
): Promise<GroupResult> {
  const benchmarks = [];
  for (const one of chosen) benchmarks.push(await runner.run(one));
  runner.noteDisturbed();
  const own = [...notes];
  notes.clear();
  return { group, settings, notes: own, benchmarks };
}

/** For a smoke run: with as many cases as are code of their own. */
function shortened(one: Benchmark): Benchmark {
  const places = new Set<string | undefined>();
  const firsts = one.cases.filter(({ environment }) => !places.has(environment) && places.add(environment));
  const cases =
    one.smokeCases === undefined ? one.cases : [...new Set([...one.cases.slice(0, one.smokeCases), ...firsts])];
  return { ...one, cases };
}

main().catch((error: unknown) => {
  // A variant's error comes with the stack of its process in its message.
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
