import { once } from 'node:events';
import { Redis as Redis6 } from 'ioredis';
import { type Coalesced, type CoalesceOptions, coalesce, Redis as DropIn } from 'ioredis-coalesce';
import Redis5 from 'ioredis5';
import { Redis as Valkey } from 'iovalkey';
import { following, type Layer, passing, replacing } from '../../observability/helpers/layers.js';

/** A client as the suites use it: any method by name. */
export interface Client extends NodeJS.EventEmitter {
  status: string;
  disconnect(): void;
  defineCommand(name: string, definition: { lua: string; numberOfKeys?: number }): void;
  [method: string]: unknown;
}

export type Host = 'ioredis6' | 'ioredis5' | 'iovalkey';

export interface Variant {
  readonly host: Host;
  readonly protocol?: 2 | 3;
  readonly replyMapping?: 'legacy' | 'resp3';
  readonly stringNumbers: boolean;
  readonly keyPrefix: string;
  /** What the coalesced side is given. */
  readonly coalesce?: CoalesceOptions;
  /** What runs within the coalesced side's flushes; see `Meddler`. */
  readonly meddler?: 'subscriber' | 'schedule' | 'transformer';
  /** The coalesced side is the drop-in class instead of `coalesce(client)`. */
  readonly dropIn?: boolean;
  /** The coalesced side is a view of a client, with a signal that is never aborted. */
  readonly view?: boolean;
  /** Which layers both sides have over `sendCommand`; see `layersOf`. */
  readonly layers?: number;
  /** Whether other code changes the sockets of both sides; see `SocketMeddler`. */
  readonly sockets?: boolean;
}

type Constructor = new (options: object) => Client;

const HOSTS: Record<Host, Constructor> = {
  ioredis6: Redis6 as unknown as Constructor,
  ioredis5: Redis5 as unknown as Constructor,
  iovalkey: Valkey as unknown as Constructor,
};

/** Every host × protocol × reply mapping × `stringNumbers` × `keyPrefix`. */
export const MATRIX: readonly Variant[] = (
  [
    { host: 'ioredis6', protocol: 2, replyMapping: 'legacy' },
    { host: 'ioredis6', protocol: 3, replyMapping: 'legacy' },
    { host: 'ioredis6', protocol: 3, replyMapping: 'resp3' },
    { host: 'ioredis5' },
    { host: 'iovalkey' },
  ] as const
).flatMap((base) =>
  [false, true].flatMap((stringNumbers) => ['', 'p:'].map((keyPrefix) => ({ ...base, stringNumbers, keyPrefix }))),
);

export function describeVariant(variant: Variant): string {
  const parts = [
    variant.view && 'a view of',
    variant.dropIn ? `${variant.host} drop-in class` : variant.host,
    variant.protocol && `RESP${variant.protocol}`,
    variant.replyMapping,
    variant.stringNumbers && 'stringNumbers',
    variant.keyPrefix && `keyPrefix ${variant.keyPrefix}`,
    variant.coalesce && JSON.stringify(variant.coalesce),
    variant.meddler && `a ${variant.meddler} that meddles`,
    variant.sockets && 'changed sockets',
    variant.layers !== undefined && `layers ${layersOf(variant.layers, []).map(({ kind }) => kind)}`,
  ];
  return parts.filter(Boolean).join(', ');
}

const LAYERS = { replacing, passing, following };
const LAYER_KINDS = Object.keys(LAYERS) as (keyof typeof LAYERS)[];

/** None to three layers of three kinds: each number below 40 is one of the ways. */
export function layersOf(way: number, log: unknown[]): { kind: string; make: Layer }[] {
  const layers: { kind: string; make: Layer }[] = [];
  for (let rest = way % 40; rest > 0; rest = Math.floor((rest - 1) / 3)) {
    const kind = LAYER_KINDS[(rest - 1) % 3] as keyof typeof LAYERS;
    layers.push({ kind, make: LAYERS[kind](log) });
  }
  return layers;
}

export type Place = { readonly host: string; readonly port: number; readonly db: number };

export async function connect(variant: Variant, place: Place, kind: 'plain' | 'coalesced'): Promise<Client> {
  const options = {
    host: place.host,
    port: place.port,
    db: place.db,
    stringNumbers: variant.stringNumbers,
    keyPrefix: variant.keyPrefix,
    ...(variant.protocol && { protocol: variant.protocol }),
    ...(variant.replyMapping && { replyMapping: variant.replyMapping }),
  };
  const client = create(variant, options, kind);
  await once(client, 'ready');
  return client;
}

function create(variant: Variant, options: object, kind: 'plain' | 'coalesced'): Client {
  if (kind === 'plain') {
    return new HOSTS[variant.host](options);
  }
  if (variant.dropIn) {
    return new (DropIn as unknown as Constructor)({ ...options, coalesce: variant.coalesce });
  }
  const client = coalesce(new HOSTS[variant.host](options), variant.coalesce);
  return variant.view ? client.coalescer.withOptions({ signal: new AbortController().signal }) : client;
}

/** `client[name](...args)`. */
export function invoke(client: Client, name: string, args: readonly unknown[]): unknown {
  const method = client[name];
  if (typeof method !== 'function') {
    throw new Error(`the client has no method ${name}`);
  }
  return method.apply(client, args);
}

/** What a coalesced client did by itself: a comparison in which it did nothing would prove nothing. */
export function workOf(client: Client): { fastShare: number; sharedReads: number; fusedReads: number } {
  const { coalescer } = client as unknown as Coalesced;
  const { commands, fastCommands, sharedReads, fusedReads } = coalescer.stats();
  return { fastShare: fastCommands / commands, sharedReads, fusedReads };
}
