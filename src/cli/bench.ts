import { setTimeout as sleep } from 'node:timers/promises';
import { SingleBar } from 'cli-progress';
import type { BenchSettings } from './arguments.js';
import { briefly, type Client, type Host, loadHost, open, VARIANTS, type Variant } from './clients.js';
import { Dataset } from './dataset.js';
import { Failure, Interrupted, unlessAborted } from './interrupt.js';
import { type Environment, type Rounds, renderReport, reportOf } from './report.js';
import { measure, type Sample } from './round.js';

const ROUNDS = 5;
const CLEANUP_TIMEOUT = 10_000;
/** Milliseconds after the run at which keys expire, if they could not be removed. */
const EXPIRY_MARGIN = 10 * 60_000;

/** @throws {Failure | Interrupted} after the keys have been removed. */
export async function runBench(settings: BenchSettings, version: string, signal: AbortSignal): Promise<void> {
  const host = loadHost();
  const keeper = await unlessAborted(open(host, settings.target, 'plain'), signal);
  const dataset = new Dataset(keeper, settings.keys, settings.valueBytes);
  const clients: Client[] = [];
  let failure: unknown;
  try {
    await prepare(dataset, settings, signal);
    const variants = {} as Record<Variant, Client>;
    for (const variant of VARIANTS) {
      variants[variant] = await unlessAborted(open(host, settings.target, variant), signal);
      clients.push(variants[variant]);
      await unlessAborted(dataset.verify(variants[variant], signal), signal);
    }
    const environment = await environmentOf(host, keeper, version);
    const rounds = await measureRounds(variants, dataset.keys, settings, signal);
    const report = reportOf(settings, environment, rounds);
    process.stdout.write(settings.json ? `${JSON.stringify(report, null, 2)}\n` : `${renderReport(report)}\n`);
  } catch (error) {
    failure = error;
  }
  for (const client of clients) client.disconnect();
  const left = await removal(dataset);
  keeper.disconnect();
  if (failure !== undefined || left !== undefined) throw withLeftOver(failure, left);
}

async function prepare(dataset: Dataset, settings: BenchSettings, signal: AbortSignal): Promise<void> {
  const expireMs = Math.ceil(VARIANTS.length * settings.seconds * 1000) + EXPIRY_MARGIN;
  await unlessAborted(dataset.write(expireMs, signal), signal);
}

/** In turns, so that other load on the machine affects all of them alike. */
async function measureRounds(
  variants: Readonly<Record<Variant, Client>>,
  keys: readonly string[],
  { concurrency, seconds }: BenchSettings,
  signal: AbortSignal,
): Promise<Rounds> {
  const bar = new SingleBar({
    format: '{bar} {percentage}% {variant}',
    clearOnComplete: true,
    hideCursor: true,
    // Ctrl-C is handled here: the progress bar is not the only thing to clean up.
    gracefulExit: false,
  });
  const perRound = seconds / ROUNDS;
  const rounds: Record<Variant, Sample>[] = [];
  bar.start((ROUNDS + 1) * VARIANTS.length, 0, { variant: 'warming up' });
  try {
    for (let round = 0; round <= ROUNDS; round += 1) {
      const samples = {} as Record<Variant, Sample>;
      for (const variant of VARIANTS) {
        bar.update({ variant: round === 0 ? 'warming up' : `${variant}, round ${round} of ${ROUNDS}` });
        samples[variant] = await unlessAborted(measure(variants[variant], keys, concurrency, perRound, signal), signal);
        signal.throwIfAborted();
        bar.increment();
        // Work that a variant has left to the event loop must not run while the next one is measured.
        await sleep(5);
      }
      if (round > 0) rounds.push(samples);
    }
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Failure(`the measurement was interrupted: ${briefly(error as Error)}`);
  } finally {
    bar.stop();
  }
  return rounds;
}

async function environmentOf(host: Host, client: Client, version: string): Promise<Environment> {
  const server = await client.info('server').catch(() => '');
  const field = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(server)?.[1]?.trim();
  const valkey = field('valkey_version');
  const name = valkey ? `Valkey ${valkey}` : `Redis ${field('redis_version') ?? 'of an unknown version'}`;
  return { package: version, node: process.versions.node, client: `${host.name} ${host.version}`, server: name };
}

/** Removes the keys; returns why some may be left, or undefined if none are. */
async function removal(dataset: Dataset): Promise<string | undefined> {
  const timeout = new AbortController();
  const late = sleep(CLEANUP_TIMEOUT, 'no answer', { signal: timeout.signal }).catch(() => undefined);
  try {
    return await Promise.race([dataset.remove(), late]).then((reason) => reason ?? undefined);
  } catch (error) {
    return (error as Error).message;
  } finally {
    timeout.abort();
  }
}

function withLeftOver(failure: unknown, left: string | undefined): unknown {
  if (left === undefined) return failure;
  const note = `keys may be left under a prefix of ours until they expire: ${left}`;
  if (failure instanceof Interrupted) return new Interrupted(`${failure.message}; ${note}`);
  if (failure instanceof Failure) return new Failure(`${failure.message}; ${note}`);
  return failure ?? new Failure(note);
}
