/** Where users are: the same bursts on loopback and at a distance, over TCP and TLS. */

import { at, type Benchmark, benchmark, burst } from './benchmark.js';

/** In the order of README's columns. */
export const PLACES = ['loopback', '0.2 ms', '1 ms', 'TLS', 'TLS, 0.2 ms', 'TLS, 1 ms'] as const;

const GETS = burst('50 GETs', 50);

export const NETWORK: readonly Benchmark[] = [
  benchmark(
    'network',
    'Bursts of 50 GETs, by round trip',
    ['plain', 'auto', 'node-redis-no-timeout', 'coalesced'],
    PLACES.map((place) => at(place, GETS)),
  ),
];
