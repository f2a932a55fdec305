import type { Dataset } from '../variants/data.js';
import type { OperationId } from '../variants/protocol.js';
import type { Case } from './benchmark.js';

export const SMALL: Dataset = { keys: 1000, valueBytes: 100 };
export const FEW: Dataset = { keys: 200, valueBytes: 100 };

export function burst(id: string, size: number, operation: OperationId = 'get', data = SMALL): Case {
  return { id, workload: { kind: 'burst', operation, size, data } };
}

export function loops(id: string, count: number, operation: OperationId = 'get', data = SMALL): Case {
  return { id, workload: { kind: 'loops', loops: count, operation, data } };
}
