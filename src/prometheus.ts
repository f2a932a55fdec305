import { register as globalRegister, type Metric, type Registry, type RegistryContentType } from 'prom-client';
import { CODES, coded, describeType, wrongOption } from './errors.js';
import type { Coalesced, Coalescer } from './handle.js';
import { checked, type Rules, resolve, rule } from './options.js';
import type { CoalescerStats } from './stats.js';
import { processWide } from './util/process-wide.js';

export type Labels = Readonly<Record<string, string | number>>;

export interface CollectOptions {
  /** prom-client's registry that the metrics go to. @default prom-client's global one */
  readonly register?: Registry<RegistryContentType>;
  /**
   * Labels that distinguish this client from others on the same registry, such as `{ client: 'sessions' }`. All clients
   * of a registry have the same label names. @default none, which is enough for one client
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

const registered = processWide('metrics', () => new WeakMap<object, RegisteredMetrics>());

/**
 * Exposes the counters of `coalescer.stats()` as Prometheus metrics named `redis_coalesce_…`. They are read once per
 * scrape of the registry, and cost nothing per command.
 *
 * A client that ended, or was detached, keeps its last counters until it is removed from the registry.
 *
 * @param client - a coalesced `Redis` or `Cluster`; a Cluster's nodes count together.
 * @returns a function that removes the client from the registry, and the metrics too if it was the last client.
 * @throws {TypeError} `COALESCE_ERR_CLIENT` if `client` is not coalesced; `COALESCE_ERR_OPTION` for options that do
 *   not fit, or labels that other clients of the registry do not have or have already.
 */
export function collectMetrics(client: Coalesced, options: CollectOptions = {}): () => void {
  const { register, labels } = resolve(options, 'options', OPTIONS, 'an object') as Required<CollectOptions>;
  if (typeof (client as Partial<Coalesced> | null | undefined)?.coalescer?.stats !== 'function') {
    const expected = 'collectMetrics() expects a coalesced client, such as coalesce(new Redis())';
    throw coded(TypeError, CODES.CLIENT, `${expected}, got ${describeType(client)}`);
  }
  let metrics = registered.get(register);
  // `register.clear()` may have removed them.
  if (metrics === undefined || metrics.registered().length === 0) {
    metrics = new RegisteredMetrics(register, labels);
    registered.set(register, metrics);
  }
  return metrics.add({ client, labels });
}

const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
/** Label names that clients cannot have. */
const OWN_LABELS: readonly string[] = ['path', 'reason', 'le'];

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

/** A value of a metric; `labels` and `suffix` are what it has beside the client's labels and the metric's name. */
interface Sample {
  readonly value: number;
  readonly labels?: Labels;
  readonly suffix?: string;
}

type Read = (stats: CoalescerStats, coalescer: Coalescer) => number | readonly Sample[];
type Metrics = Readonly<Record<string, readonly [help: string, read: Read]>>;
type Counts = Readonly<Record<string, number>>;

const COUNTERS: Metrics = {
  redis_coalesce_commands_total: [
    'Commands sent, by path: fast (encoded by ioredis-coalesce) or fallback (encoded by the client itself).',
    ({ commands, fastCommands }) => by('path', { fast: fastCommands, fallback: commands - fastCommands }),
  ],
  redis_coalesce_fallbacks_total: [
    'Commands that could take the fast path and were left to the client, by reason.',
    (stats) => by('reason', stats.fallbacks),
  ],
  redis_coalesce_replies_total: [
    'Replies received, by who decoded them: fast (ioredis-coalesce) or fallback (the client itself).',
    (stats) => by('path', stats.replies),
  ],
  redis_coalesce_batches_total: ['Batches written, by what flushed them.', (stats) => by('reason', stats.flushReasons)],
  redis_coalesce_polled_turns_total: [
    'Turns after which the event loop looked for the replies instead of waiting (option busyPoll).',
    (stats) => stats.polledTurns,
  ],
  redis_coalesce_polled_turns_answered_total: [
    'Of the polled turns, the ones for which a reply came in that time.',
    (stats) => stats.polledTurnsAnswered,
  ],
  redis_coalesce_written_bytes_total: ['Bytes of commands handed to the socket.', (stats) => stats.bytesWritten],
  redis_coalesce_shared_reads_total: [
    'Reads answered by the reply to an identical one (option shareReads); they are not among the commands sent.',
    (stats) => stats.sharedReads,
  ],
  redis_coalesce_fused_reads_total: [
    'Commands that left within an MGET or HMGET (option fuseReads).',
    (stats) => stats.fusedReads,
  ],
  redis_coalesce_refused_calls_total: [
    'Calls refused because too many commands await their reply (option maxPending).',
    (stats) => stats.refusedCalls,
  ],
  redis_coalesce_cache_hits_total: [
    'Reads answered from memory (option cache); they are not among the commands sent.',
    ({ cache }) => cache?.hits ?? 0,
  ],
  redis_coalesce_cache_misses_total: [
    'Reads that could have been answered from memory and were sent.',
    ({ cache }) => cache?.misses ?? 0,
  ],
  redis_coalesce_cache_held_total: [
    'Of these, reads whose answer was in memory and could not be used yet.',
    ({ cache }) => cache?.held ?? 0,
  ],
  redis_coalesce_cache_invalidations_total: [
    'Answers removed from memory because their key has changed, or all keys have.',
    ({ cache }) => cache?.invalidations ?? 0,
  ],
  redis_coalesce_cache_evictions_total: [
    'Answers removed from memory for lack of room.',
    ({ cache }) => cache?.evictions ?? 0,
  ],
};

const GAUGES: Metrics = {
  redis_coalesce_cache_entries: ['Answers kept in memory.', ({ cache }) => cache?.entries ?? 0],
  redis_coalesce_cache_bytes: ['Approximate bytes of the answers kept in memory.', ({ cache }) => cache?.bytes ?? 0],
  redis_coalesce_in_flight_commands: ['Commands that await their reply, sent or not.', (stats) => stats.inFlight],
  redis_coalesce_queued_commands: [
    'Of the commands in flight, the ones that wait for room under maxInFlight.',
    (stats) => stats.queued,
  ],
  redis_coalesce_max_in_flight_commands: [
    'The option maxInFlight, which limits each connection.',
    (_, { options }) => options.maxInFlight,
  ],
  redis_coalesce_attached: [
    'Whether the client is coalesced: 1, or 0 if it is plain, by detach(), an option or IOREDIS_COALESCE.',
    (_, { enabled }) => Number(enabled),
  ],
  redis_coalesce_unknown_client: [
    'Whether the client stays plain because its release is not known.',
    ({ unknownClient }) => Number(unknownClient !== undefined),
  ],
};

const HISTOGRAMS: Metrics = {
  redis_coalesce_batch_size_commands: [
    'Commands in a batch.',
    // Queued commands are in no batch yet. Of the others, at most those of the open batch are not counted yet.
    ({ batchSizes, commands, queued }) => histogram(batchSizes, commands - queued, 1, [0, 14]),
  ],
  redis_coalesce_flush_wait_seconds: [
    'How long the first command of a batch waited for the flush.',
    ({ flushWaits, flushWaitTotal }) => histogram(flushWaits, flushWaitTotal / 1_000, 1_000_000, [4, 20]),
  ],
};

const METRICS = [
  ['counter', COUNTERS],
  ['gauge', GAUGES],
  ['histogram', HISTOGRAMS],
] as const;

function by(label: string, counts: Counts): Sample[] {
  return Object.entries(counts).map(([of, value]) => ({ value, labels: { [label]: of } }));
}

/**
 * The samples of a histogram, cumulated as Prometheus has them.
 *
 * @param counts - by upper bound, a power of two; not cumulated.
 * @param sum - of all values, in the exposed unit.
 * @param scale - how many of the counted unit make one of the exposed one.
 * @param exponents - of the lowest and the highest bound that is exposed.
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

interface Collected {
  readonly client: Coalesced;
  readonly labels: Labels;
}

/** The metrics on one registry, and the clients that they are read from. */
class RegisteredMetrics {
  readonly #clients = new Set<Collected>();
  readonly #metrics = new Map<string, Metric>();
  readonly #labelNames: string;
  #readings: (readonly [Collected, CoalescerStats])[] | undefined;

  constructor(
    readonly register: Registry<RegistryContentType>,
    labels: Labels,
  ) {
    this.#labelNames = namesOf(labels);
    for (const [type, metrics] of METRICS) {
      for (const [name, [help, read]] of Object.entries(metrics)) {
        const values = () =>
          this.#read().flatMap(([{ client, labels: own }, stats]) => {
            const found = read(stats, client.coalescer);
            const samples = typeof found === 'number' ? [{ value: found }] : found;
            return samples.map(({ value, labels, suffix }) => ({
              value,
              labels: { ...labels, ...own },
              ...(suffix && { metricName: `${name}${suffix}` }),
            }));
          });
        this.#metrics.set(name, readMetric(type, name, help, values));
      }
    }
  }

  /** The metrics that the registry still has. */
  registered(): readonly string[] {
    return [...this.#metrics.keys()].filter((name) => this.register.getSingleMetric(name) === this.#metrics.get(name));
  }

  /** Adds a client; returns a function that removes it. */
  add(added: Collected): () => void {
    this.#checkFits(added);
    this.#registerMissing();
    this.#clients.add(added);
    return () => {
      if (!this.#clients.delete(added) || this.#clients.size > 0) return;
      for (const name of this.registered()) this.register.removeSingleMetric(name);
    };
  }

  /** Registers all metrics at first, then those that `removeSingleMetric()` has removed. */
  #registerMissing(): void {
    const present = this.registered();
    const missing = [...this.#metrics].filter(([name]) => !present.includes(name));
    for (const [name] of missing) {
      if (this.register.getSingleMetric(name) === undefined) continue;
      throw wrongOption(`options.register already has a metric named ${name}, which collectMetrics() did not create`);
    }
    for (const [, metric] of missing) this.register.registerMetric(metric);
  }

  #checkFits({ client, labels }: Collected): void {
    const names = namesOf(labels);
    if (names !== this.#labelNames) {
      throw wrongOption(
        'options.labels must have the same names as for the other clients on this registry, ' +
          `${this.#labelNames || 'none'}, got ${names || 'none'}`,
      );
    }
    for (const present of this.#clients) {
      if (present.client === client) {
        throw wrongOption(
          `collectMetrics() expects a client only once per registry, got one that is registered as ${shown(present.labels)}`,
        );
      }
      if (shown(present.labels) === shown(labels)) {
        throw wrongOption(
          `options.labels must be different for each client on a registry, got ${shown(labels)} for a second one`,
        );
      }
    }
  }

  /** One snapshot for all metrics of a scrape: the registry reads them before the next microtask. */
  #read(): readonly (readonly [Collected, CoalescerStats])[] {
    if (this.#readings === undefined) {
      // After detach() and coalesce() a client has another coalescer, whose counters begin at zero.
      this.#readings = Array.from(this.#clients, (one) => [one, one.client.coalescer.stats()]);
      queueMicrotask(() => {
        this.#readings = undefined;
      });
    }
    return this.#readings;
  }
}

/**
 * What prom-client asks of a metric. Its own classes count by themselves; the values of this one have been counted
 * already, and are read when the registry asks for them.
 */
function readMetric(type: string, name: string, help: string, values: () => object[]): Metric {
  const described = { type, name, help, aggregator: 'sum' };
  const metric = {
    ...described,
    // prom-client changes the name, for OpenMetrics.
    get: async () => ({ ...described, name: metric.name, values: values() }),
    reset: () => {},
  };
  return metric as unknown as Metric;
}

function namesOf(labels: Labels): string {
  return Object.keys(labels).sort().join(', ');
}

/** `{client="cache"}` */
function shown(labels: Labels): string {
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${sorted.map(([name, value]) => `${name}=${JSON.stringify(String(value))}`).join(', ')}}`;
}
