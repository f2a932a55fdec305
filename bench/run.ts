import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Harness } from './experiments/harness.js';
import { runHttpBenchmarks } from './http/benchmarks.js';
import { printReport } from './report/terminal.js';
import { BenchServer } from './suite/bench-server.js';
import { bundlePrograms } from './suite/bundle.js';
import { cleanly } from './suite/cleanup.js';
import { compareWith } from './suite/compare.js';
import { targetsMissed } from './suite/evaluate.js';
import { type BenchOptions, HELP, parseOptions } from './suite/options.js';
import { Progress } from './suite/progress.js';
import {
  type BenchmarkResult,
  type BenchReport,
  type ExperimentResult,
  mergeInto,
  writeReport,
} from './suite/results.js';
import { Runner } from './suite/runner.js';
import { readSettings } from './suite/settings.js';
import { keepAwake } from './suite/spinner.js';

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
function bench({ benchmarks, experiments, pace, smoke, awake }: BenchOptions): Promise<BenchReport> {
  return cleanly(async (cleanup) => {
    const bundle = await bundlePrograms();
    await cleanup.add(() => bundle.remove());
    const server = await BenchServer.open(process.env.REDIS_URL, { log: (line) => process.stderr.write(`${line}\n`) });
    await cleanup.add(() => server.close());
    const ofClients = benchmarks.filter((one) => one.kind === 'client');
    const overHttp = benchmarks.filter((one) => one.kind === 'http');
    const steps = [...ofClients.map((one) => Runner.steps(one, pace)), ...experiments.map((one) => one.steps)];
    const progress = new Progress(steps.reduce((sum, some) => sum + some, overHttp.length));
    await cleanup.add(async () => progress.stop());
    const runner = new Runner(server, bundle.files.variant, pace, progress, smoke);
    await cleanup.add(() => runner.abort());
    const { notes } = runner;
    if (smoke) notes.add('A smoke run: everything ran and values are right; the figures mean nothing.');
    const harness = new Harness({ server, bundle, smoke, rounds: pace.rounds, progress, notes });
    await cleanup.add(() => harness.close());

    const settings = readSettings({ url: server.url, server: server.version, awake, ...pace });
    const results: BenchmarkResult[] = [];
    for (const benchmark of ofClients) {
      const cases = await runner.run(benchmark);
      if (cases !== undefined) results.push({ id: benchmark.id, title: benchmark.title, cases });
    }
    await runner.close();
    if (overHttp.length > 0) {
      results.push(...(await runHttpBenchmarks(overHttp, { server, bundle, cleanup, smoke, pace, progress })));
    }
    const found: ExperimentResult[] = [];
    for (const experiment of experiments) {
      const { id, title, steps: expected } = experiment;
      harness.begin(title, expected);
      found.push({ id, title, figures: await experiment.run(harness) });
      await harness.close();
    }
    if (runner.disturbance !== undefined) notes.add(runner.disturbance);
    return { settings, benchmarks: results, experiments: found, notes: [...notes] };
  });
}

main().catch((error: unknown) => {
  // A variant's error comes with the stack of its process in its message.
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
