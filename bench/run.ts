import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { openHarness } from './experiments/harness.js';
import { printReport } from './report/terminal.js';
import { cleanly } from './suite/cleanup.js';
import { compareWith } from './suite/compare.js';
import { targetsMissed } from './suite/evaluate.js';
import { type BenchOptions, HELP, parseOptions } from './suite/options.js';
import {
  type BenchmarkResult,
  type BenchReport,
  type ExperimentResult,
  mergeInto,
  writeReport,
} from './suite/results.js';
import { openRig } from './suite/rig.js';
import { Runner } from './suite/runner.js';
import { readSettings } from './suite/settings.js';
import { areSessionsGrouped, keepAwake } from './suite/spinner.js';

const GROUPED =
  'The kernel shares the processors out between sessions (autogroup): kernel.sched_autogroup_enabled=0 makes the figures steadier.';

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  if (options === undefined) {
    console.log(HELP);
    return;
  }
  const stop = options.awake ? keepAwake() : () => {};
  await run(options).finally(stop);
}

async function run(options: BenchOptions): Promise<void> {
  if (options.compare !== undefined) {
    console.log(await compareWith(options.compare, options));
    return;
  }
  const report = await bench(options);
  printReport(report);
  await write(report, options);
  if (options.check && targetsMissed(report.benchmarks) > 0) process.exitCode = 1;
}

async function write(report: BenchReport, { merge, out, smoke }: BenchOptions): Promise<void> {
  if (out === undefined) {
    if (!smoke) console.log('Not written to a file: neither --out nor --merge was given.');
    return;
  }
  await mkdir(dirname(out), { recursive: true });
  await writeReport(out, merge ? await mergeInto(out, report) : report);
  console.log(`Written to ${out}.`);
}

/** Leaves nothing behind however it ends: no keys, no processes. */
function bench({ benchmarks, experiments, pace, smoke, awake, untilClear }: BenchOptions): Promise<BenchReport> {
  return cleanly(async (cleanup) => {
    const steps = [...benchmarks.map((one) => Runner.steps(one, pace)), ...experiments.map((one) => one.steps)];
    const rig = await openRig(cleanup, { pace, smoke, untilClear, steps: steps.reduce((sum, some) => sum + some, 0) });
    const { notes, server } = rig;
    if (smoke) notes.add('A smoke run: everything ran and values are right; the figures mean nothing.');
    if (awake && areSessionsGrouped()) notes.add(GROUPED);
    const settings = await readSettings({ server, awake, untilClear, ...pace });
    const runner = new Runner(rig);
    await cleanup.add(() => {
      rig.kill();
      return runner.leave();
    });
    const results: BenchmarkResult[] = [];
    for (const benchmark of benchmarks) {
      const result = await runner.run(benchmark);
      if (result !== undefined) results.push(result);
    }
    await runner.close();
    const found: ExperimentResult[] = [];
    for (const experiment of experiments) {
      const { id, title } = experiment;
      const harness = await openHarness(rig, experiment);
      found.push({ id, title, figures: await experiment.run(harness) });
      await harness.close();
    }
    return {
      settings,
      benchmarks: results,
      experiments: found,
      notes: [...notes].map((text) => ({ revision: settings.revision, text })),
    };
  });
}

main().catch((error: unknown) => {
  // A variant's error comes with the stack of its process in its message.
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
