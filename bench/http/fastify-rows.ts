import { measure } from './measure.js';
import { CONNECTIONS, type FastifyRow, type Plan } from './types.js';

export type { FastifyRow } from './types.js';

const SMOKE: Plan = {
  connections: CONNECTIONS,
  rounds: 1,
  seconds: 0.2,
  warmUpSeconds: 0.1,
  countedRequests: 120,
};

export interface FastifyContext {
  redisUrl: string;
  smoke: boolean;
  rounds: number;
  /** Of each timed run. */
  seconds: number;
  /** Called before each step. */
  progress(label: string): void;
  /** Ends the run early: it rejects once everything is cleaned up. */
  signal?: AbortSignal;
}

/** The example under load with both clients: one row per route, client and round. */
export async function runFastifyRows(context: FastifyContext): Promise<FastifyRow[]> {
  const { smoke, rounds, seconds, ...order } = context;
  const full: Plan = { connections: CONNECTIONS, rounds, seconds, warmUpSeconds: 1, countedRequests: 1500 };
  const { rows } = await measure({ ...order, plan: smoke ? SMOKE : full });
  return rows;
}
