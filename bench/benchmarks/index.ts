import type { Benchmark } from './benchmark.js';
import { CACHE } from './cache.js';
import { CORE } from './core.js';
import { FUSED } from './fused.js';
import { GRID } from './grid.js';
import { NETWORK } from './network.js';
import { PACKAGES } from './packages.js';
import { PEERS } from './peers.js';
import { PREFETCH } from './prefetch.js';
import { LOW_LOAD_COSTS, PRODUCTION, TRACED } from './production.js';
import { SCALE } from './scale.js';
import { SCHEDULE } from './schedule.js';
import { WATCHING } from './watching.js';

/** By the name under which all of a group are run, and its results kept. */
export const GROUPS: Readonly<Record<string, readonly Benchmark[]>> = {
  production: PRODUCTION,
  traced: TRACED,
  'low-load': LOW_LOAD_COSTS,
  core: CORE,
  network: NETWORK,
  schedule: SCHEDULE,
  grid: GRID,
  packages: PACKAGES,
  cache: CACHE,
  prefetch: PREFETCH,
  scale: SCALE,
  peers: PEERS,
  watching: WATCHING,
  fused: FUSED,
};

export const BENCHMARKS: readonly Benchmark[] = Object.values(GROUPS).flat();

/** The groups that are named, and what has an id that starts with one of the names; everything where there is none. */
export function select(names: readonly string[]): readonly Benchmark[] {
  for (const name of names) {
    if (name in GROUPS || BENCHMARKS.some(({ id }) => id.startsWith(name))) continue;
    const ids = BENCHMARKS.map(({ id }) => id).join(', ');
    throw new Error(
      `nothing is called "${name}"; the groups are ${Object.keys(GROUPS).join(', ')}; the ids are ${ids}`,
    );
  }
  if (names.length === 0) return BENCHMARKS;
  return BENCHMARKS.filter((one) => names.some((name) => GROUPS[name]?.includes(one) || one.id.startsWith(name)));
}
