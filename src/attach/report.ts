/** `IOREDIS_COALESCE=stats`: prints one line per client to standard error when the process ends, and on SIGUSR2. */
import { writeSync } from 'node:fs';
import { reports } from '../environment.js';
import { isHostCluster, startupNodesOf } from '../host/cluster.js';
import type { HasOptions } from '../host/types.js';
import type { Stats } from '../stats.js';
import { setImmediate } from '../util/clock.js';

const STANDARD_ERROR = 2;

export interface Reportable {
  readonly client: HasOptions & { readonly status?: string };
  readonly counters: Stats;
  readonly enabled: boolean;
  /** Called by `detach()` of a corked client, to undo a report's changes to the client. */
  onDetached?: () => void;
  /** Why it is corked. */
  readonly reason?: { readonly why: string };
}

interface Reported {
  /** Computed at once, since the client's options may change later. */
  readonly name: string;
  readonly counters: Stats;
  readonly attachment: WeakRef<Reportable>;
}

/** The numbers of `clients`, `commands`, `fastCommands`, `batches` and predictions, and of fallbacks by reason. */
type Figures = ReturnType<typeof figuresOf>;

/** Clients that are still in memory, held by weak references only. */
const reported = new Set<Reported>();
/** The sums of collected clients, by name. */
const collected = new Map<string, Figures>();
const registry = new FinalizationRegistry<Reported>((one) => {
  reported.delete(one);
  addTo(collected, one);
});
let isListening = false;
let observe: (attachment: Reportable) => void = () => {};

/** Calls `by` with each client that will be reported. */
export function onReported(by: typeof observe): void {
  observe = by;
}

export function report(attachment: Reportable): void {
  const { client, reason } = attachment;
  const name = nameOf(client) + (reason ? `, corked since ${reason.why}` : '');
  const one = { name, counters: attachment.counters, attachment: new WeakRef(attachment) };
  observe(attachment);
  queueMicrotask(() => {
    // The client's code may have coalesced it itself, instead of `register`.
    if (!attachment.enabled) return;
    reported.add(one);
    registry.register(attachment, one);
  });
  listen();
}

function listen(): void {
  if (isListening) return;
  isListening = true;
  process.on('exit', print);
  // Windows has no such signal.
  const isFree = reports === 'stats' || process.listenerCount('SIGUSR2') === 0;
  if (process.platform !== 'win32' && isFree) process.on('SIGUSR2', print);
  for (const name of ['SIGTERM', 'SIGINT'] as const) if (process.listenerCount(name) === 0) printAtSignal(name);
}

/** Prints before the signal ends the process. Does nothing once the program has its own listener. */
function printAtSignal(name: 'SIGTERM' | 'SIGINT'): void {
  const unlisten = () => {
    process.off(name, end);
    process.off('newListener', stepAside);
  };
  const end = () => {
    unlisten();
    print();
    // Let this turn's commands be sent first.
    setImmediate(() => process.kill(process.pid, name));
  };
  const stepAside = (added: string | symbol) => {
    // Deferred, because Node ignores a signal that has no listener even for a moment.
    if (added === name) queueMicrotask(unlisten);
  };
  process.on(name, end);
  process.on('newListener', stepAside);
}

const prefixed = (texts: readonly string[]) => texts.map((text) => `ioredis-coalesce: ${text}`);
let reportOf: (clients: readonly string[], asTexts: typeof prefixed) => string[] = prefixed;

/** Changes what is printed, given the lines of all clients. */
export function changeReport(by: typeof reportOf): void {
  reportOf = by;
}

function print(): void {
  for (const line of reportOf(lines(), prefixed)) writeSync(STANDARD_ERROR, `${line}\n`);
}

/** A line for each client, and one per name for all clients that have ended or were detached. */
function lines(): string[] {
  const all: string[] = [];
  const ended = new Map(collected);
  for (const one of reported) {
    const attachment = one.attachment.deref();
    if (!attachment?.enabled || attachment.client.status === 'end') addTo(ended, one);
    else all.push(lineOf(one.name, figuresOf(one)));
  }
  for (const [name, figures] of ended) all.push(lineOf(name, figures));
  return all;
}

function figuresOf({ counters }: Reported) {
  const { commands, fastCommands, batches, fallbacks } = counters.snapshot('fast');
  const { predicted, predictionsUsed } = counters.cache;
  return { clients: 1, commands, fastCommands, batches, predicted, predictionsUsed, ...fallbacks };
}

function addTo(sums: Map<string, Figures>, one: Reported): void {
  const sum = sums.get(one.name);
  const figures = figuresOf(one);
  const names = Object.keys(figures) as (keyof Figures)[];
  if (sum !== undefined) for (const name of names) figures[name] += sum[name];
  sums.set(one.name, figures);
}

/**
 * `127.0.0.1:6379/0: 1200 commands, 100 batches, 12.0 per batch, 98 % fast; not fast: connection 20, arguments 4`, or
 * `127.0.0.1:6379/0, 30 clients that have ended: 1200 commands, …`.
 */
function lineOf(name: string, figures: Figures): string {
  const { clients, commands, fastCommands, batches, predicted, predictionsUsed, ...fallbacks } = figures;
  const who = clients > 1 ? `${name}, ${clients} clients that have ended` : name;
  const reasons = Object.entries(fallbacks)
    .filter(([, count]) => count > 0)
    .map(([reason, count]) => `${reason} ${count}`);
  const notFast = reasons.length > 0 ? `; not fast: ${reasons.join(', ')}` : '';
  const saved = predicted > 0 ? `; ${predictionsUsed} round trips saved by ${predicted} predicted reads` : '';
  const mean = (commands / Math.max(batches, 1)).toFixed(1);
  const fast = Math.floor((100 * fastCommands) / commands);
  const what =
    commands === 0
      ? 'no commands'
      : `${commands} commands, ${batches} batches, ${mean} per batch, ${fast} % fast${notFast}${saved}`;
  return `${who}: ${what}`;
}

/** The address of a client or Cluster, without its password. */
function nameOf(client: object): string {
  if (isHostCluster(client)) return `Cluster of ${startupNodesOf(client).length} startup nodes`;
  const { path, host, port, db, connectionName } = (client as HasOptions).options;
  const server = path ?? `${host}:${port}`;
  return `${connectionName ? `${String(connectionName)} ` : ''}${server}/${db ?? 0}`;
}
