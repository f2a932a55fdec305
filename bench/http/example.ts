/** The routes of the example, and the clients that its services are started with. */

export const ROUTES = {
  sequential: '8 sequential awaits',
  parallel: '8 in Promise.all',
  pipeline: 'hand-written pipeline',
  'no-redis': 'no Redis at all',
} as const;
export type RouteId = keyof typeof ROUTES;
export const ROUTE_IDS = Object.keys(ROUTES) as RouteId[];

export type ClientKind = 'plain' | 'corked' | 'coalesced' | 'cached';
/** Concurrent HTTP connections. */
export const CONNECTIONS = 30;
