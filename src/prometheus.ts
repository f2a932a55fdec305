import { register as globalRegister, type Metric, type Registry, type RegistryContentType } from 'prom-client';
import { CODES, coded, describeType, wrongOption } from './errors.js';
import type { Coalesced, Coalescer } from './handle.js';
import { checked, type Rules, resolve, rule } from './options.js';
import type { CacheStats, CoalescerStats } from './stats.js';
import { processWide } from './util/process-wide.js';

export type Labels = Readonly<Record<string, string | number>>;

export interface CollectOptions {
  /** The prom-client registry for the metrics. @default prom-client's global one */
  readonly register?: Registry<RegistryContentType>;
  /**
   * Labels that distinguish this client from others on the same registry, such as `{ client: 'sessions' }`. All clients
   * of a registry need the same label names. @default none, which is enough for one client
   */
  readonly labels?: Labels;
}

const OPTIONS: Rules<CollectOptions> = {
  register: rule(
    globalRegister,
    'a Registry of prom-client',
    (value) => typeof (value as Partial<Registry> | null)?.registerMetric === 'function',
  ),
  labels: { byDefault: {}, check: checkedLabels },
};

/**
 * Exposes the counters of `coalescer.stats()` as Prometheus metrics named `redis_coalesce_…`. They are read once per
 * scrape of the registry, and cost nothing per command.
 *
 * A client that ended, or was detached, keeps its last counters until it is removed from the registry.
 *
 * @param client - a coalesced `Redis` or `Cluster`; a Cluster's nodes count together.
 * @returns a function that removes the client from the registry, and the metrics too if it was the last client.
 * @throws {TypeError} `COALESCE_ERR_CLIENT` if `client` is not coalesced; `COALESCE_ERR_OPTION` for invalid options,
 *   labels already in use, or label names that differ from those of other clients.
 */
export function collectMetrics(client: Coalesced, options: CollectOptions = {}): () => void {
  const { register, labels } = resolve(options, 'options', OPTIONS, 'an object') as Required<CollectOptions>;
  if (typeof (client as Partial<Coalesced> | null | undefined)?.coalescer?.stats !== 'function') {
    const expected = 'collectMetrics() expects a coalesced client, such as coalesce(new Redis())';
    const isPlain = typeof (client as { sendCommand?: unknown } | null | undefined)?.sendCommand === 'function';
    const got = isPlain ? 'a plain client: call coalesce() on it first' : describeType(client);
    throw coded(TypeError, CODES.CLIENT, `${expected}, got ${got}`);
  }
  const { clients, metrics } = collectedOn(register);
  checkFits(clients, client, labels);
  for (const [name, metric] of metrics) {
    const present = register.getSingleMetric(name);
    if (present === undefined || present === metric) continue;
    throw wrongOption(`options.register already has a metric named ${name}, which collectMetrics() did not create`);
  }
  if (clients.size === 0) for (const metric of metrics.values()) register.registerMetric(metric);
  clients.set(client, labels);
  return () => {
    if (!clients.delete(client) || clients.size > 0) return;
    for (const [name, metric] of metrics) {
      if (register.getSingleMetric(name) === metric) register.removeSingleMetric(name);
    }
  };
}

const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
/** Label names that clients cannot have. */
const OWN_LABELS: readonly string[] = ['path', 'reason', 'mode', 'le'];

function checkedLabels(value: unknown, name: string): Labels {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const labels = checked<Labels>(value, name, 'an object', isObject);
  for (const [label, content] of Object.entries(labels)) {
    if (OWN_LABELS.includes(label)) {
      throw wrongOption(`${name}.${label} is a label that these metrics already have; choose another name`);
    }
    checked(label, `${name}: a name`, 'letters, digits and _, and not begin with a digit', LABEL_NAME.test(label));
    const isContent = typeof content === 'string' || Number.isFinite(content);
    checked(content, `${name}.${label}`, 'a string or a finite number', isContent);
  }
  return labels;
}

/** A value of a metric, with labels in addition to the client's, and a suffix to the metric's name. */
interface Sample {
  readonly value: number;
  readonly labels?: Labels;
  readonly suffix?: string;
}

type Read = (stats: CoalescerStats, coalescer: Coalescer) => number | readonly Sample[];
type Counts = Readonly<Record<string, number>>;

/** The metrics by name, without the prefix `redis_coalesce_`. Names that end in `_total` are counters. */
const METRICS: Readonly<Record<string, readonly [help: string, read: Read, type?: 'histogram']>> = {
  commands_total: [
    'Commands sent, by path: fast (encoded by ioredis-coalesce) or fallback (encoded by the client itself).',
    ({ commands, fastCommands }) => by('path', { fast: fastCommands, fallback: commands - fastCommands }),
  ],
  fallbacks_total: [
    'Commands left to the client that could otherwise be fast, by reason.',
    (stats) => by('reason', stats.fallbacks),
  ],
  replies_total: [
    'Replies received, by decoder: fast (ioredis-coalesce) or fallback (the client itself).',
    (stats) => by('path', stats.replies),
  ],
  batches_total: ['Batches written, by what flushed them.', (stats) => by('reason', stats.flushReasons)],
  polled_turns_total: [
    'Turns after which the event loop looked for the replies instead of waiting (option busyPoll).',
    (stats) => stats.polledTurns,
  ],
  polled_turns_answered_total: [
    'Polled turns for which a reply arrived in that time.',
    (stats) => stats.polledTurnsAnswered,
  ],
  written_bytes_total: ['Bytes of commands handed to the socket.', (stats) => stats.bytesWritten],
  shared_reads_total: [
    'Reads answered by the reply to an identical one (option shareReads); they are not among the commands sent.',
    (stats) => stats.sharedReads,
  ],
  fused_reads_total: ['Commands sent as part of an MGET or HMGET (option fuseReads).', (stats) => stats.fusedReads],
  refused_calls_total: [
    'Calls refused because too many commands await their reply (option maxPending).',
    (stats) => stats.refusedCalls,
  ],
  cache_hits_total: [
    'Reads answered from memory (option cache); they are not among the commands sent.',
    ofCache('hits'),
  ],
  cache_misses_total: ['Reads that the cache could have answered, but that were sent.', ofCache('misses')],
  cache_held_total: ['Cache misses whose answer was in memory but could not be used yet.', ofCache('held')],
  cache_invalidations_total: ['Answers removed from memory because their key changed.', ofCache('invalidations')],
  cache_evictions_total: ['Answers evicted from memory to make room.', ofCache('evictions')],
  cache_predicted_total: ['Reads sent before a caller issued them (option cache.prefetch).', ofCache('predicted')],
  cache_predictions_used_total: ['Predicted reads whose answer a caller used.', ofCache('predictionsUsed')],
  cache_entries: ['Answers kept in memory.', ofCache('entries')],
  cache_bytes: ['Approximate bytes of the answers kept in memory.', ofCache('bytes')],
  in_flight_commands: ['Commands that await their reply, sent or not.', (stats) => stats.inFlight],
  queued_commands: ['Commands in flight that wait because of maxInFlight.', (stats) => stats.queued],
  max_in_flight_commands: [
    'The option maxInFlight, which limits each connection.',
    (_, { options }) => options.maxInFlight,
  ],
  attached: [
    'Whether the client is coalesced: 1, or 0 if it is plain, by detach(), an option or IOREDIS_COALESCE.',
    (_, { enabled }) => Number(enabled),
  ],
  mode: [
    'Mode of the client: 1 for one of fast, cork and plain, 0 for the others.',
    ({ mode }) => by('mode', { fast: 0, cork: 0, plain: 0, [mode]: 1 }),
  ],
  unknown_client: [
    'Whether the client is in cork mode because ioredis was not recognized.',
    ({ unknownClient }) => Number(unknownClient !== undefined),
  ],
  batch_size_commands: [
    'Commands in a batch.',
    // Queued commands are not in a batch yet. Of the others, at most those in the open batch are not counted.
    ({ batchSizes, commands, queued }) => histogram(batchSizes, commands - queued, 1, [0, 14]),
    'histogram',
  ],
  flush_wait_seconds: [
    'Time that the first command of a batch waited until the batch was written.',
    ({ flushWaits, flushWaitTotal }) => histogram(flushWaits, flushWaitTotal / 1_000, 1_000_000, [4, 20]),
    'histogram',
  ],
};

/** A figure of the caches; 0 without the option `cache`. */
function ofCache(figure: keyof CacheStats): Read {
  return ({ cache }) => cache?.[figure] ?? 0;
}

function by(label: string, counts: Counts): Sample[] {
  return Object.entries(counts).map(([of, value]) => ({ value, labels: { [label]: of } }));
}

/**
 * The samples of a histogram, which are cumulative in Prometheus.
 *
 * @param counts - not cumulative, by upper bound, which is a power of two.
 * @param sum - the sum of all values, in the exposed unit.
 * @param scale - the exposed unit in counted units.
 * @param exponents - those of the lowest and the highest exposed bound.
 */
function histogram(counts: Counts, sum: number, scale: number, [lowest, highest]: [number, number]): Sample[] {
  const upTo = (bound: number) =>
    Object.entries(counts).reduce((total, [upper, count]) => (Number(upper) <= bound ? total + count : total), 0);
  const bounds = Array.from({ length: highest - lowest + 1 }, (_, index) => 2 ** (lowest + index));
  const all = upTo(Number.POSITIVE_INFINITY);
  return [
    ...bounds.map((bound) => ({ suffix: '_bucket', value: upTo(bound), labels: { le: bound / scale } })),
    { suffix: '_bucket', value: all, labels: { le: '+Inf' } },
    { suffix: '_sum', value: sum },
    { suffix: '_count', value: all },
  ];
}

/** The clients and metrics on one registry. */
interface Collected {
  readonly clients: Map<Coalesced, Labels>;
  readonly metrics: ReadonlyMap<string, Metric>;
}

const collected = processWide('metrics-by-registry', () => new WeakMap<object, Collected>());

/** The clients and metrics on a registry; new ones after `register.clear()`. */
function collectedOn(register: Registry<RegistryContentType>): Collected {
  const present = collected.get(register);
  for (const [name, metric] of present?.metrics ?? []) {
    if (register.getSingleMetric(name) === metric) return present as Collected;
  }
  const clients = new Map<Coalesced, Labels>();
  const made = { clients, metrics: metricsOf(clients) };
  collected.set(register, made);
  return made;
}

function metricsOf(clients: Collected['clients']): Collected['metrics'] {
  let readings: (readonly [Labels, CoalescerStats, Coalescer])[] | undefined;
  /** Takes one snapshot for all metrics of a scrape, which the registry reads before the next microtask. */
  const read = () => {
    if (readings === undefined) {
      // Read again, because detach() and coalesce() replace the coalescer, whose counters start at 0.
      readings = Array.from(clients, ([{ coalescer }, labels]) => [labels, coalescer.stats(), coalescer]);
      queueMicrotask(() => {
        readings = undefined;
      });
    }
    return readings;
  };
  const metrics = Object.entries(METRICS).map(([part, [help, readFrom, kind]]) => {
    const name = `redis_coalesce_${part}`;
    const type = kind ?? (name.endsWith('_total') ? 'counter' : 'gauge');
    const values = () =>
      read().flatMap(([own, stats, coalescer]) => {
        const found = readFrom(stats, coalescer);
        const samples: readonly Sample[] = typeof found === 'number' ? [{ value: found }] : found;
        return samples.map(({ value, labels, suffix }) => ({
          value,
          labels: { ...labels, ...own },
          ...(suffix && { metricName: `${name}${suffix}` }),
        }));
      });
    return [name, readMetric(type, name, help, values)] as const;
  });
  return new Map(metrics);
}

/**
 * A metric for prom-client whose values are read at each scrape. prom-client's own classes do the counting themselves,
 * but these values are counted already.
 */
function readMetric(type: string, name: string, help: string, values: () => object[]): Metric {
  const described = { type, name, help, aggregator: 'sum' };
  const metric = {
    ...described,
    // prom-client changes the name for OpenMetrics.
    get: async () => ({ ...described, name: metric.name, values: values() }),
    reset: () => {},
  };
  return metric as unknown as Metric;
}

function checkFits(clients: Collected['clients'], client: Coalesced, labels: Labels): void {
  for (const [present, its] of clients) {
    if (namesOf(labels) !== namesOf(its)) {
      throw wrongOption(
        'options.labels must have the same names as for the other clients on this registry, ' +
          `${namesOf(its) || 'none'}, got ${namesOf(labels) || 'none'}`,
      );
    }
    if (present === client) {
      throw wrongOption(
        `collectMetrics() expects a client only once per registry, got one that is registered as ${shown(its)}`,
      );
    }
    if (shown(labels) === shown(its)) {
      throw wrongOption(
        `options.labels must be different for each client on a registry, got ${shown(labels)} for a second one`,
      );
    }
  }
}

function namesOf(labels: Labels): string {
  return Object.keys(labels).sort().join(', ');
}

/** `{client="cache"}` */
function shown(labels: Labels): string {
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${sorted.map(([name, value]) => `${name}=${JSON.stringify(String(value))}`).join(', ')}}`;
}
