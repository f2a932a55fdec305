/** Services below what they could do: requests that come at random times, at a share of the rate that plain manages. */

import { FEW } from '../variants/data.js';
import type { ServiceWorkload } from '../variants/protocol.js';
import { at, type Benchmark, benchmark, type Case } from './benchmark.js';

export const RATE_PLACES = ['loopback', '0.5 ms', 'TLS, 0.5 ms'] as const;
export const COMMANDS = [1, 5] as const;
export const SHARES = [10, 30, 60, 90] as const;
/** Over TLS, those that most services run at. */
const SHARES_OF_TLS: readonly number[] = [30, 60];

export function rateCase(commands: (typeof COMMANDS)[number], share: (typeof SHARES)[number]): string {
  return `${commands} ${commands === 1 ? 'HGET' : 'HGETs'}, ${share} %`;
}

function service(id: string, commands: number, load: Pick<ServiceWorkload, 'rate' | 'share'>): Case {
  return { id, workload: { kind: 'service', operation: 'hget', data: FEW, commands, ...load } };
}

const loads = RATE_PLACES.flatMap((place) =>
  COMMANDS.flatMap((commands) =>
    SHARES.filter((share) => !place.startsWith('TLS') || SHARES_OF_TLS.includes(share)).map((share) =>
      at(place, service(rateCase(commands, share), commands, { share: share / 100 })),
    ),
  ),
);

/** README shows the cork beside it. */
const SHOWN = `0.5 ms: ${rateCase(5, 30)}`;

export const RATES: readonly Benchmark[] = [
  benchmark(
    'rates',
    'A service at a fixed rate',
    ['plain', 'coalesced'],
    loads.map((one) => (one.id === SHOWN ? { ...one, variants: ['plain', 'cork', 'coalesced'] } : one)),
    { warmUpSeconds: 0.5, smokeCases: 1 },
  ),
  benchmark(
    'idle',
    'A service without requests (CPU per second), and with ten per second',
    ['plain', 'coalesced'],
    [service('idle', 5, { rate: 0 }), service('10 requests/s', 5, { rate: 10 })],
    { warmUpSeconds: 1, smokeCases: 1 },
  ),
];
