import { mkdir } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname } from 'node:path';
import { runExperiment } from './experiments/experiment.js';
import { Harness } from './experiments/harness.js';
import { runHttpBenchmarks } from './http/benchmarks.js';
import { printReport } from './report/terminal.js';
import { BenchServer } from './suite/bench-server.js';
import { type Bundle, bundlePrograms } from './suite/bundle.js';
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

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

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
  const bundle = await bundlePrograms();
  const report = await bench(bundle, options).finally(() => bundle.remove());
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

async function bench(
  bundle: Bundle,
  { benchmarks, experiments, pace, smoke, awake }: BenchOptions,
): Promise<BenchReport> {
  const server = await BenchServer.open(process.env.REDIS_URL, { log: (line) => process.stderr.write(`${line}\n`) });
  const ofClients = benchmarks.filter((one) => one.kind === 'client');
  const overHttp = benchmarks.filter((one) => one.kind === 'http');
  const steps = [
    ...ofClients.map((one) => Runner.steps(one, pace)),
    ...experiments.map((one) => one.steps),
    overHttp.length,
  ];
  const progress = new Progress(steps.reduce((sum, some) => sum + some, 0));
  const runner = new Runner(server, bundle.files.variant, pace, progress, smoke);
  if (smoke) runner.notes.add('A smoke run: everything ran and values are right; the figures mean nothing.');
  const harness = new Harness({ server, bundle, smoke, rounds: pace.rounds, progress, notes: runner.notes });
  const stopping = new AbortController();
  let http: Promise<BenchmarkResult[]> | undefined;
  const cleanUp = async () => {
    progress.stop();
    stopping.abort();
    await runner.abort();
    runner.kill();
    await harness.close();
    await http?.catch(() => {});
    await bundle.remove();
    await server.close();
  };
  const uninstall = onSignal(cleanUp);
  try {
    const settings = readSettings({ url: server.url, server: server.version, awake, ...pace });
    const results: BenchmarkResult[] = [];
    for (const benchmark of ofClients) {
      const cases = await runner.run(benchmark);
      if (cases !== undefined) results.push({ id: benchmark.id, title: benchmark.title, cases });
    }
    await runner.close();
    if (overHttp.length > 0) {
      http = runHttpBenchmarks(overHttp, { server, smoke, pace, progress, signal: stopping.signal });
      results.push(...(await http));
    }
    const found: ExperimentResult[] = [];
    for (const experiment of experiments) {
      harness.begin(experiment.title, experiment.steps);
      found.push(await runExperiment(experiment, harness));
      await harness.close();
    }
    if (runner.disturbance !== undefined) runner.notes.add(runner.disturbance);
    return { settings, benchmarks: results, experiments: found, notes: [...runner.notes] };
  } finally {
    uninstall();
    await cleanUp();
  }
}

/** Leaves nothing behind however the run ends: no keys, no processes. A second signal ends at once. */
function onSignal(cleanUp: () => Promise<void>): () => void {
  const listeners = SIGNALS.map((signal) => {
    const listener = () => {
      process.stderr.write(`\n${signal}: removing the run's keys\n`);
      // What the ended processes make fail is of no interest any more.
      process.on('uncaughtException', () => {});
      const leave = () => process.exit(128 + constants.signals[signal]);
      cleanUp().then(leave, leave);
    };
    process.once(signal, listener);
    return { signal, listener };
  });
  return () => {
    for (const { signal, listener } of listeners) process.off(signal, listener);
  };
}

main().catch((error: unknown) => {
  // A variant's error comes with the stack of its process in its message.
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
