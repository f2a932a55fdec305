/** The keys and values of a run: the parent writes them, the variants read them. */

export interface Dataset {
  readonly keys: number;
  readonly valueBytes: number;
  /** Of a list or a sorted set, or the fields of a hash. @default 100, of a hash 8 */
  readonly elements?: number;
}

/** What no workload reads. */
export const NOTHING: Dataset = { keys: 0, valueBytes: 0 };
export const SMALL: Dataset = { keys: 1000, valueBytes: 100 };
export const FEW: Dataset = { keys: 200, valueBytes: 100 };

const FIELDS = 8;
const ELEMENTS = 100;

/** Every operation by the keys that it shares; writes have their own, so that they do not disturb what reads expect. */
const GROUPS = {
  ...({ get: 'read', mixed: 'read', call: 'read', script: 'read', 'pipeline-200': 'read', multi: 'read' } as const),
  ...({ stats: 'read', scrape: 'read' } as const),
  ...({ set: 'write', setex: 'write', lrange: 'list', zrange: 'zset' } as const),
  ...({ hget: 'hash', hgetall: 'hash', 'pipeline-8': 'hash' } as const),
};
export type OperationId = keyof typeof GROUPS;

export function groupOf(operation: OperationId): (typeof GROUPS)[OperationId] {
  return GROUPS[operation];
}

export function keysOf(prefix: string, data: Dataset, operation: OperationId): string[] {
  const kind = [groupOf(operation), data.valueBytes, ...(data.elements === undefined ? [] : [data.elements])].join(':');
  return Array.from({ length: data.keys }, (_, index) => `${prefix}${kind}:${index}`);
}

/** Values differ from key to key, so that a reply given to the wrong caller is seen. */
export function valuesOf(data: Dataset): string[] {
  return Array.from({ length: data.keys }, (_, index) => `${index}:`.padEnd(data.valueBytes, 'coalesce'));
}

export const fieldOf = (field: number): string => `f${field}`;

export function hashOf(value: string, { elements = FIELDS }: Partial<Dataset> = {}): Record<string, string> {
  return Object.fromEntries(Array.from({ length: elements }, (_, field) => [fieldOf(field), value]));
}

/** In the order of a sorted set, too, where each element's score is its place. */
export function listOf(value: string, { elements = ELEMENTS }: Partial<Dataset> = {}): string[] {
  return Array.from({ length: elements }, (_, element) => `${element}:${value}`);
}

/** The list that a memory round blocks on, so that what is sent after it stays unanswered. */
export function gateOf(prefix: string): string {
  return `${prefix}gate`;
}
