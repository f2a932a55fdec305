import type { Benchmark } from './benchmark.js';
import { CACHE } from './cache.js';
import { CORE } from './core.js';
import { GRID } from './grid.js';
import { HOT_PATH } from './hot-path.js';
import { OVERLAP } from './overlap.js';
import { PACKAGES } from './packages.js';
import { PEERS } from './peers.js';
import { WATCHING } from './watching.js';

/** By the name under which all of a group are run. */
export const GROUPS: Readonly<Record<string, readonly Benchmark[]>> = {
  core: CORE,
  peers: PEERS,
  'hot-path': HOT_PATH,
  overlap: OVERLAP,
  cache: CACHE,
  watching: WATCHING,
  packages: PACKAGES,
  grid: GRID,
};

export const BENCHMARKS: readonly Benchmark[] = Object.values(GROUPS).flat();
