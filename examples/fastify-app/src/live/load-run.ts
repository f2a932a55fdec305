import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { readServerCpuUs } from '../server-info.js';
import type { LoadResult, LoadSample } from './load.js';
import { LoadProcess } from './load-process.js';
import { type Subject, type Usage, usageSince, VARIANTS, type Variant } from './subject.js';

const SAMPLE_MS = 250;
const WARM_UP_SECONDS = 1;
// Between two phases: one's sockets are closed before the other begins.
const PAUSE_MS = 150;
const PATHS = 20;

export interface RunSettings {
  connections: number;
  /** Redis commands per request. */
  commands: number;
  /** How long each client is loaded. */
  seconds: number;
}

/** One point of the charts over time. */
export interface RunPoint {
  variant: Variant;
  seconds: number;
  requestsPerSecond: number;
  p99Ms: number;
  writesPerCommand: number;
  redisCpuUsPerCommand: number;
}

/** A point, and the two distributions so far. */
export interface RunSample extends RunPoint {
  latencies: number[];
  commandsBySize: Record<number, number>;
}

export interface RunFigures {
  requests: number;
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  writesPerCommand: number;
  redisCpuUsPerCommand: number;
  serviceCpuUsPerRequest: number;
  latencies: number[];
  commandsBySize: Record<number, number>;
}

export interface RunResult {
  settings: RunSettings;
  figures: Record<Variant, RunFigures>;
  /** For pages that were opened later. */
  points: RunPoint[];
}

export interface RunProgress {
  /** From 0 to 1. */
  fraction: number;
  label: string;
}

export interface RunEvents {
  progress(progress: RunProgress): void;
  sample(sample: RunSample): void;
}

/** A period of load on a client. */
interface Phase {
  variant: Variant;
  label: string;
  seconds: number;
  timed: boolean;
}

export interface LoadRunOptions {
  origin: string;
  settings: RunSettings;
  subjects: Record<Variant, Subject>;
  /** A third connection: to ask the server for its CPU time. */
  observer: Redis;
  events: RunEvents;
}

/**
 * One bounded load run: a warm-up of each client, then a second of each in turn, so that anything else that this
 * machine does affects all of them.
 */
export class LoadRun {
  readonly #options: LoadRunOptions;
  readonly #load = new LoadProcess();
  readonly #points: RunPoint[] = [];
  readonly #totals: Record<Variant, Totals> = {
    plain: newTotals(),
    coalesced: newTotals(),
    cached: newTotals(),
  };
  #stopped: Error | undefined;

  constructor(options: LoadRunOptions) {
    this.#options = options;
  }

  async run(): Promise<RunResult> {
    const { settings, events } = this.#options;
    const phases = phasesOf(settings);
    const total = phases.reduce((sum, { seconds }) => sum + seconds, 0);
    let done = 0;
    try {
      for (const phase of phases) {
        await sleep(PAUSE_MS);
        await this.#drive(phase, (seconds) => {
          events.progress({ fraction: (done + Math.min(seconds, phase.seconds)) / total, label: phase.label });
        });
        done += phase.seconds;
      }
      events.progress({ fraction: 1, label: 'done' });
      const { plain, coalesced, cached } = this.#totals;
      const figures = { plain: figuresOf(plain), coalesced: figuresOf(coalesced), cached: figuresOf(cached) };
      return { settings, figures, points: this.#points };
    } catch (error) {
      throw this.#stopped ?? error;
    } finally {
      this.#load.stop();
    }
  }

  /** Ends it: `run()` rejects with this error. */
  stop(reason: Error): void {
    this.#stopped ??= reason;
    this.#load.stop();
  }

  async #drive({ variant, seconds, timed }: Phase, progress: (seconds: number) => void): Promise<void> {
    const { origin, settings } = this.#options;
    const totals = timed ? this.#totals[variant] : newTotals();
    const secondsBefore = totals.seconds;
    progress(0);

    const serviceBefore = process.cpuUsage();
    let previous = await this.#read(variant);
    const sample = async (load?: LoadSample): Promise<void> => {
      const now = await this.#read(variant);
      const since = difference(previous, now);
      previous = now;
      add(totals, since);
      // A sample without answers, or read after the load had ended, is not a point.
      if (timed && load && load.requests > 0 && since.usage.commands > 0) {
        this.#report(variant, secondsBefore + load.seconds, load, since, totals);
      }
    };
    let sampling = Promise.resolve();
    const result = await this.#load.run(
      {
        origin,
        paths: Array.from(
          { length: PATHS },
          (_, index) => `/live/load/${variant}/${1 + index}?commands=${settings.commands}`,
        ),
        connections: settings.connections,
        limit: { seconds },
        sampleMs: SAMPLE_MS,
        series: timed ? variant : 'warm-up',
      },
      (load) => {
        progress(load.seconds);
        // One after the other, however slowly the server answers; only the run's own failure is reported.
        sampling = sampling.then(() => sample(load)).catch(() => {});
      },
    );
    const service = process.cpuUsage(serviceBefore);
    await sampling;
    await sample();
    totals.result = result;
    totals.seconds += seconds;
    totals.serviceCpuUs += service.user + service.system;
  }

  #report(variant: Variant, seconds: number, load: LoadSample, since: Reading, { usage }: Totals): void {
    const { requestsPerSecond, p99Ms, latencies } = load;
    const point: RunPoint = { variant, seconds, requestsPerSecond, p99Ms, ...perCommand(since) };
    this.#points.push(point);
    this.#options.events.sample({ ...point, latencies, commandsBySize: usage.commandsBySize });
  }

  async #read(variant: Variant): Promise<Reading> {
    const { subjects, observer } = this.#options;
    return { usage: subjects[variant].usage(), redisCpuUs: await readServerCpuUs(observer) };
  }
}

/** After the warm-up, a second of each in turn, in alternating order. */
function phasesOf({ seconds }: RunSettings): Phase[] {
  const warmUps = VARIANTS.map(
    (variant): Phase => ({ variant, label: 'warming up', seconds: WARM_UP_SECONDS, timed: false }),
  );
  const turns = Array.from({ length: seconds }, (_, turn) => (turn % 2 === 0 ? VARIANTS : VARIANTS.toReversed()));
  const label = 'load on the clients in turn';
  return [...warmUps, ...turns.flat().map((variant): Phase => ({ variant, label, seconds: 1, timed: true }))];
}

interface Reading {
  usage: Usage;
  redisCpuUs: number;
}

/** The sums over one client's phases. */
interface Totals extends Reading {
  seconds: number;
  serviceCpuUs: number;
  result?: LoadResult;
}

function newTotals(): Totals {
  return { usage: { commands: 0, writes: 0, commandsBySize: {} }, redisCpuUs: 0, seconds: 0, serviceCpuUs: 0 };
}

function difference(before: Reading, after: Reading): Reading {
  return { usage: usageSince(before.usage, after.usage), redisCpuUs: after.redisCpuUs - before.redisCpuUs };
}

function add(totals: Totals, { usage, redisCpuUs }: Reading): void {
  totals.redisCpuUs += redisCpuUs;
  totals.usage.commands += usage.commands;
  totals.usage.writes += usage.writes;
  for (const [size, commands] of Object.entries(usage.commandsBySize)) {
    totals.usage.commandsBySize[Number(size)] = (totals.usage.commandsBySize[Number(size)] ?? 0) + commands;
  }
}

function perCommand({ usage, redisCpuUs }: Reading) {
  return { writesPerCommand: usage.writes / usage.commands, redisCpuUsPerCommand: redisCpuUs / usage.commands };
}

function figuresOf(totals: Totals): RunFigures {
  const { result, usage, serviceCpuUs } = totals;
  if (!result) {
    throw new Error('expected the result of a load, got none');
  }
  return {
    requests: result.requests,
    requestsPerSecond: result.requests / result.seconds,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    serviceCpuUsPerRequest: serviceCpuUs / result.requests,
    latencies: result.latencies,
    commandsBySize: usage.commandsBySize,
    ...perCommand(totals),
  };
}
