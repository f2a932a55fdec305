/** What is measured, as data. What it should come to stands in targets.ts. */

import { type ClientKind, CONNECTIONS, type RouteId } from '../http/example.js';
import type { EnvironmentKind } from '../suite/environment.js';
import type { VariantId } from '../variants/clients.js';
import type { Dataset, OperationId } from '../variants/data.js';
import type { Sample, Workload } from '../variants/protocol.js';

type Read = (sample: Sample) => number | undefined;

export const METRICS = {
  throughput: { title: 'throughput', unit: '/s', read: (sample) => sample.perSecond },
  cpu: { title: 'client CPU', unit: 'µs', read: (sample) => sample.cpuUs },
  serverCpu: { title: 'server CPU', unit: 'µs', read: (sample) => sample.serverCpuUs },
  p50: { title: 'median latency', unit: 'µs', read: (sample) => sample.latencyUs?.p50 },
  p99: { title: 'p99 latency', unit: 'µs', read: (sample) => sample.latencyUs?.p99 },
  memory: { title: 'memory', unit: 'B', read: (sample) => sample.bytes },
} satisfies Readonly<Record<string, { title: string; unit: string; read: Read }>>;
export type Metric = keyof typeof METRICS;

/** The server driven by its own benchmark tool: no Node in the way. */
export const SERVER_LIMIT = 'redis-benchmark';
export type ClientVariant = VariantId | typeof SERVER_LIMIT;

export interface Case {
  readonly id: string;
  readonly workload: Workload;
}

export interface Benchmark {
  readonly id: string;
  readonly title: string;
  /** How it is drawn; not at all if it is not said. `gains`: throughput of coalesced divided by that of plain. */
  readonly chart?: {
    readonly kind: 'bars' | 'curves' | 'gains' | 'heat';
    readonly metric?: Metric;
    readonly log?: true;
  };
  readonly environment?: EnvironmentKind;
  /** Its rounds, as multiples of those of the run. @default both 1 */
  readonly pace?: { readonly rounds: number; readonly seconds: number };
  /**
   * Whether each round takes processes of its own: one keeps its luck with the compiler and the layout of its memory,
   * which is worth up to a tenth.
   */
  readonly ownProcesses?: true;
  /**
   * Whether all rounds of a case come before those of the next one. A package takes a while to set up, and a client takes
   * a while to find out how this work is sent best.
   */
  readonly caseByCase?: true;
  readonly variants: readonly string[];
  readonly cases: readonly Case[];
  /** How many cases a smoke run takes, from the front; 0 where other benchmarks run the same code. @default 1 */
  readonly smokeCases?: number;
  /** Where the variants are routes of the example, over HTTP: which, and with which client. Figures are per request. */
  readonly routes?: Readonly<Record<string, readonly [route: RouteId, client: ClientKind]>>;
}

type More = Pick<Benchmark, 'chart' | 'environment' | 'ownProcesses' | 'caseByCase' | 'smokeCases'>;

/** With all rounds at full length. */
export function full(
  id: string,
  title: string,
  variants: readonly ClientVariant[],
  cases: readonly Case[],
  more: More = {},
): Benchmark {
  return { id, title, variants, cases, ...more };
}

/** With fewer and shorter rounds, so that the whole stays within an hour. */
export function brief(...args: Parameters<typeof full>): Benchmark {
  return { ...full(...args), pace: { rounds: 3 / 5, seconds: 1 / 2 } };
}

/** With many short rounds: for many cases that are to be compared closely on a machine whose speed varies. */
export function fine(...args: Parameters<typeof full>): Benchmark {
  return { ...full(...args), caseByCase: true, pace: { rounds: 3, seconds: 1 / 10 } };
}

export function http(
  id: string,
  title: string,
  routes: NonNullable<Benchmark['routes']>,
  { rates, ...more }: Pick<Benchmark, 'chart' | 'pace' | 'smokeCases'> & { readonly rates?: readonly number[] } = {},
): Benchmark {
  const load = { kind: 'package', name: 'fastify', concurrency: CONNECTIONS, data: NOTHING } as const;
  const cases = rates?.map((rate) => ({
    id: `${rate.toLocaleString('en-US')} requests/s`,
    workload: { ...load, rate },
  })) ?? [{ id: `${CONNECTIONS} connections`, workload: load }];
  return { id, title, variants: Object.keys(routes), cases, routes, caseByCase: true, ...more };
}

export const NOTHING: Dataset = { keys: 0, valueBytes: 0 };
export const SMALL: Dataset = { keys: 1000, valueBytes: 100 };
export const FEW: Dataset = { keys: 200, valueBytes: 100 };

export function burst(id: string, size: number, operation: OperationId = 'get', data = SMALL): Case {
  return { id, workload: { kind: 'burst', operation, size, data } };
}

export function loops(id: string, count: number, operation: OperationId = 'get', data = SMALL): Case {
  return { id, workload: { kind: 'loops', loops: count, operation, data } };
}

export function memory(commands: number, of?: 'pipeline'): Case {
  const id = `${commands.toLocaleString('en-US')} GETs`;
  return { id, workload: { kind: 'memory', commands, data: SMALL, ...(of === undefined ? {} : { of }) } };
}
