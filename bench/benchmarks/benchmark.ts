/** What is measured, as data. What it should come to is in targets.ts. */

import { type ClientKind, CONNECTIONS, type RouteId } from '../http/example.js';
import type { EnvironmentKind } from '../suite/environment.js';
import type { VariantId } from '../variants/clients.js';
import { type Dataset, NOTHING, type OperationId, SMALL } from '../variants/data.js';
import type { Metric, Workload } from '../variants/protocol.js';

export interface Case {
  /** Within its benchmark. */
  readonly id: string;
  readonly workload: Workload;
  /** Where it runs, if not on the run's own server with the machine to itself. */
  readonly environment?: EnvironmentKind;
  /** @default those of the benchmark */
  readonly variants?: readonly VariantId[];
}

export interface Benchmark {
  readonly id: string;
  readonly title: string;
  readonly variants: readonly string[];
  readonly cases: readonly Case[];
  /** Before a variant's first round: its code has to become fast. @default 0.3 */
  readonly warmUpSeconds?: number;
  /** Length of a timed round. @default 0.5 */
  readonly seconds?: number;
  /** Rounds at most. @default 10 */
  readonly most?: number;
  /** Those whose ratios to the first variant's have to be known well. @default throughput and CPU */
  readonly metrics?: readonly Metric[];
  /** Whether socket writes are counted, after the rounds. */
  readonly counted?: true;
  /**
   * How many cases a smoke run takes, from the front. @default all that differ in code: those of the first environment
   */
  readonly smokeCases?: number;
  /** Where the variants are routes of the example, over HTTP: which, and with which client. Figures are per request. */
  readonly routes?: Readonly<Record<string, readonly [route: RouteId, client: ClientKind]>>;
}

type More = Omit<Benchmark, 'id' | 'title' | 'variants' | 'cases' | 'routes'>;

export function benchmark(
  id: string,
  title: string,
  variants: readonly VariantId[],
  cases: readonly Case[],
  more: More = {},
): Benchmark {
  return { id, title, variants, cases, ...more };
}

export function http(id: string, title: string, routes: NonNullable<Benchmark['routes']>, more: More = {}): Benchmark {
  const workload = { kind: 'package', name: 'fastify', concurrency: CONNECTIONS, data: NOTHING } as const;
  const cases = [{ id: `${CONNECTIONS} connections`, workload }];
  // A service takes seconds until the compiler has seen enough of it.
  return { id, title, variants: Object.keys(routes), cases, routes, warmUpSeconds: 2, ...more };
}

export function burst(id: string, size: number, operation: OperationId = 'get', data: Dataset = SMALL): Case {
  return { id, workload: { kind: 'burst', operation, size, data } };
}

export function loops(id: string, count: number, operation: OperationId = 'get', data: Dataset = SMALL): Case {
  return { id, workload: { kind: 'loops', loops: count, operation, data } };
}

export function memory(id: string, commands: number, of?: 'pipeline'): Case {
  return { id, workload: { kind: 'memory', commands, data: SMALL, ...(of === undefined ? {} : { of }) } };
}

/** The same case elsewhere. */
export function at(environment: EnvironmentKind, { id, ...rest }: Case): Case {
  return { ...rest, id: `${environment}: ${id}`, environment };
}
