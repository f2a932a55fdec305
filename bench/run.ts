import { mkdir, rm, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname } from 'node:path';
import { buildArms } from './arm-process.js';
import { compareWith } from './compare.js';
import { runExperiment } from './experiments/experiment.js';
import { Lab } from './experiments/lab.js';
import { runHttpRows } from './http-rows.js';
import { judge } from './judge.js';
import { type BenchOptions, HELP, parseOptions } from './options.js';
import { Progress } from './progress.js';
import type { BenchReport, RowResult } from './results.js';
import type { HttpRow } from './rows.js';
import { Runner } from './runner.js';
import { BenchServer } from './server.js';
import { readSettings } from './settings.js';
import { barsMissed, printReport } from './tables.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

async function main(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  if (options === undefined) {
    console.log(HELP);
    return;
  }
  if (options.compare !== undefined) {
    console.log(await compareWith(options.compare, options));
    return;
  }
  const report = await bench(options);
  printReport(report);
  if (options.out !== undefined) {
    await mkdir(dirname(options.out), { recursive: true });
    await writeFile(options.out, `${JSON.stringify(report, null, 2)}\n`);
    console.log(`Written to ${options.out}.`);
  } else if (!options.smoke) {
    console.log('Not written to a file: rows were chosen, and --out was not given.');
  }
  if (options.check && barsMissed(report) > 0) process.exitCode = 1;
}

async function bench(options: BenchOptions): Promise<BenchReport> {
  const armFile = await buildArms();
  try {
    return await benchWith(armFile, options);
  } finally {
    await rm(armFile, { force: true });
  }
}

async function benchWith(armFile: string, options: BenchOptions): Promise<BenchReport> {
  const { rows, experiments, pace, smoke } = options;
  const server = await BenchServer.open((line) => process.stderr.write(`${line}\n`));
  const clientRows = rows.filter((row) => row.kind === 'client');
  const httpRows = rows.filter((row): row is HttpRow => row.kind === 'http');
  const stepsOfRows = clientRows.reduce((sum, row) => sum + Runner.steps(row, pace), httpRows.length);
  const progress = new Progress(experiments.reduce((sum, { steps }) => sum + steps, stepsOfRows));
  const runner = new Runner(server, armFile, pace, progress, smoke);
  if (smoke) runner.notes.add('A smoke run: everything ran and values are right; the figures mean nothing.');
  const lab = new Lab({ server, armFile, smoke, rounds: pace.rounds, progress, notes: runner.notes });
  const stopping = new AbortController();
  let http: Promise<RowResult[]> | undefined;
  const cleanUp = async () => {
    progress.stop();
    stopping.abort();
    await runner.abort();
    runner.kill();
    await lab.close();
    await http?.catch(() => {});
    await rm(armFile, { force: true });
    await server.close();
  };
  const uninstall = onSignal(cleanUp);
  try {
    const settings = readSettings({ url: server.url, server: server.version, ...pace });
    const results: RowResult[] = [];
    for (const row of clientRows) {
      const cases = await runner.run(row);
      if (cases !== undefined) results.push(judge(row, cases));
    }
    await runner.close();
    if (httpRows.length > 0) {
      http = runHttpRows(httpRows, {
        redisUrl: server.url,
        smoke,
        rounds: pace.rounds,
        seconds: pace.seconds,
        progress: (label) => progress.show('Fastify', label),
        signal: stopping.signal,
      });
      results.push(...(await http));
    }
    const found = [];
    for (const experiment of experiments) {
      lab.begin(experiment.title, experiment.steps);
      found.push(await runExperiment(experiment, lab));
      await lab.close();
    }
    return { settings, rows: results, experiments: found, notes: [...runner.notes] };
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
      // What the ended arms make fail is of no interest any more.
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
  // An arm's error comes with the arm's own stack in its message.
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
