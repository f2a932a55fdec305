import { AsyncLocalStorage } from 'node:async_hooks';
import { channel as namedChannel, tracingChannel } from 'node:diagnostics_channel';
import fc from 'fast-check';
import { around, type Command, type Layer, passing, replacing } from '../../observability/helpers/layers.js';
import type { Client } from '../hosts.js';
import { channelOf, type Rewriting } from '../rewriting.js';
import { canonical } from './canonical.js';
import { Fates, OPEN } from './profiles.js';

/**
 * Programs of a client whose watchers come and go while its commands are under way: layers over its class's
 * `sendCommand` and its own, subscribers of the host's channel of commands, and of that of an APM which has rewritten
 * the client as it was loaded.
 */
export interface WatchedProgram {
  readonly rewriting: Rewriting | undefined;
  readonly keyPrefix: string;
  readonly maxRetriesPerRequest: number;
  readonly turns: readonly Turn[];
}

interface Turn {
  /** `cut`: its steps destroy the stream themselves; `slots`: a Cluster's commands are redirected. */
  readonly loses: 'nothing' | 'requests' | 'replies' | 'cut' | 'slots';
  readonly steps: readonly Step[];
}

/** What layers may use of a command to read it. */
interface ReadCommand extends Command {
  readonly replyEncoding: string | null;
  readonly pipelineIndex?: number;
  getKeys(): unknown;
  transformReply(reply: unknown): unknown;
}

const LAYERS = {
  replacing,
  passing,
  /** As Datadog's and Elastic's. */
  following: (log: unknown[]) =>
    layered(log, (command) => {
      const told = (event: string) => void log.push([event, command.name]);
      command.promise.then(
        () => told('fulfilled'),
        () => told('failed'),
      );
    }),
  /** Callers get another promise. */
  deriving: () =>
    around((send) => {
      const returned = send();
      if (!(returned instanceof Promise)) return returned;
      const derived = returned.then((value) => value);
      // Nobody holds that of a handshake's command.
      derived.catch(() => {});
      return derived;
    }),
  /** It reads all that commands have. */
  reading: (log: unknown[]) =>
    layered(log, (command) => {
      const { name, args, replyEncoding, getKeys, transformReply } = command as ReadCommand;
      const replies = [Buffer.from('é'), [Buffer.from('f')]].map((reply) => transformReply.call(command, reply));
      log.push(['read', name, canonical([args, replyEncoding, getKeys.call(command), replies])]);
    }),
  /** In a context of its own, as a tracer's spans are. */
  entering: (log: unknown[]): Layer => {
    let spans = 0;
    return around((send, { name }) => {
      if (OWN.test(name)) return send();
      spans += 1;
      log.push(['entered', name, context.getStore() ?? 'nothing']);
      return context.run(spans, send);
    });
  },
  /** It changes replies. */
  encoding: () =>
    around((send, command) => {
      const { resolve } = command;
      command.resolve = (reply) => resolve(Buffer.isBuffer(reply) ? Buffer.concat([reply, Buffer.from('~')]) : reply);
      return send();
    }),
  /** It throws at a call of some keys. */
  throwing: () =>
    around((send, command) => {
      const { name, args, pipelineIndex } = command as ReadCommand;
      // Out of a pipeline it leaves a plain client with a queue that does not fit its replies.
      if (isCalling && pipelineIndex === undefined && /^(get|set)$/.test(name) && /none$/.test(String(args[0])))
        throw new RangeError(`no ${name}`);
      return send();
    }),
  /** A command is sent some microtasks later. */
  late: () =>
    around((send, { promise }) => {
      Promise.resolve()
        .then(send)
        .catch(() => {});
      return promise;
    }),
} satisfies Record<string, (log: unknown[]) => Layer>;
type LayerName = keyof typeof LAYERS;

const context = new AsyncLocalStorage<number>();
/** Whether a call is being made. */
let isCalling = false;

function layered(log: unknown[], see: (command: Command) => void): Layer {
  return around((send, command) => {
    log.push(['passed', command.name]);
    see(command);
    return send();
  });
}

/** `nodes`: the class of a Cluster's nodes. */
type Place = 'class' | 'own' | 'nodes';
type Watch =
  | { readonly on: LayerName; readonly place: Place }
  | { readonly off: Place }
  | 'subscribe'
  | 'unsubscribe'
  | 'attach anew';

type Call = readonly [name: string, ...args: unknown[]];
type Way = 'method' | 'callback' | 'call' | 'aborted';
export type Step =
  | { readonly kind: 'watch'; readonly watch: Watch }
  /** Those of a Cluster name the node by a key: its connection is cut, its slot is looked for elsewhere, or moves. */
  | { readonly kind: 'cut' | 'view' | 'move'; readonly key: string }
  | { readonly kind: 'gap'; readonly gap: 'microtask' | 'nextTick' | 'immediate' | 'replies' }
  | { readonly kind: 'call'; readonly call: Call; readonly way: Way; readonly times: number };

const key = fc.constantFrom<unknown>('a', 'b', 'n', 'ключ', Buffer.from('a'), 7, 'h', 'none');
const value = fc.constantFrom<unknown>('text', 'é', 12.5, Buffer.from([0xff, 0]), 'x'.repeat(40));
export const read: fc.Arbitrary<Call> = fc.oneof(
  { weight: 6, arbitrary: key.map((k): Call => ['get', k]) },
  { weight: 1, arbitrary: key.map((k): Call => ['getBuffer', k]) },
  { weight: 2, arbitrary: fc.constantFrom('f', 'é').map((f): Call => ['hget', 'h', f]) },
  { weight: 1, arbitrary: fc.constantFrom<Call>(['hgetall', 'h'], ['hgetallBuffer', 'h'], ['strlen', 'a']) },
  { weight: 1, arbitrary: fc.tuple(key, key).map((keys): Call => ['mget', ...keys]) },
  { weight: 1, arbitrary: fc.tuple(key, key).map((keys): Call => ['pipeline', ...keys]) },
  { weight: 1, arbitrary: fc.tuple(key, key).map((keys): Call => ['transaction', ...keys]) },
  { weight: 1, arbitrary: fc.tuple(key, value).map((args): Call => ['pair', ...args]) },
);
export const write: fc.Arbitrary<Call> = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(key, value).map((args): Call => ['set', ...args]) },
  { weight: 2, arbitrary: key.map((k): Call => ['incr', k]) },
  { weight: 1, arbitrary: fc.tuple(key, value).map((args): Call => ['append', ...args]) },
  { weight: 1, arbitrary: value.map((v): Call => ['hset', 'h', 'f', v]) },
  { weight: 1, arbitrary: key.map((k): Call => ['del', k]) },
  { weight: 1, arbitrary: fc.tuple(key, value).map((args): Call => ['set', ...args, 'EX', 'wrong']) },
  { weight: 1, arbitrary: fc.constantFrom(0, 1).map((db): Call => ['select', db]) },
  { weight: 1, arbitrary: fc.constantFrom<Call>(['multi'], ['exec'], ['discard']) },
);
const way = fc.constantFrom<Way>('method', 'method', 'method', 'method', 'method', 'callback', 'call', 'aborted');
const callOf = (call: fc.Arbitrary<Call>): fc.Arbitrary<Step> =>
  fc.record({
    kind: fc.constant('call' as const),
    call,
    way,
    times: fc.constantFrom(...Array<number>(12).fill(1), 2, 2, 34),
  });
const layerName = fc.constantFrom(...(Object.keys(LAYERS) as LayerName[]));
export const watchAt = (place: fc.Arbitrary<Place>): fc.Arbitrary<Step> =>
  fc
    .oneof<fc.Arbitrary<Watch>[]>(
      fc.record({ on: layerName, place }),
      fc.record({ on: layerName, place }),
      fc.record({ off: place }),
      fc.record({ off: place }),
      fc.constant('subscribe'),
      fc.constant('unsubscribe'),
      fc.constantFrom('attach anew', 'unsubscribe'),
    )
    .map((one) => ({ kind: 'watch', watch: one }));
const watch = watchAt(fc.constantFrom('class', 'class', 'class', 'own'));
const gap: fc.Arbitrary<Step> = fc
  .constantFrom('microtask' as const, 'nextTick' as const, 'immediate' as const, 'replies' as const)
  .map((one) => ({ kind: 'gap', gap: one }));
/**
 * What the server has executed when a connection is lost is a matter of luck, but for reads.
 *
 * @param often - calls of turns in which nothing is lost.
 */
export const turnOf = (
  often: fc.Arbitrary<Call>,
  reads: fc.Arbitrary<Call>,
  watches: fc.Arbitrary<Step>,
  lost: fc.Arbitrary<Omit<Turn, 'steps'> & { readonly step?: Step; readonly isFirst?: boolean }>,
): fc.Arbitrary<Turn> =>
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        loses: fc.constant('nothing' as const),
        steps: fc.array(
          fc.oneof(
            { weight: 10, arbitrary: callOf(often) },
            { weight: 4, arbitrary: watches },
            { weight: 2, arbitrary: gap },
          ),
          { minLength: 1, maxLength: 14, size: 'max' },
        ),
      }),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(
          lost,
          fc.array(fc.oneof({ weight: 4, arbitrary: callOf(reads) }, { weight: 2, arbitrary: watches }), {
            minLength: 1,
            maxLength: 10,
            size: 'max',
          }),
        )
        .map(([{ loses, step, isFirst }, steps]) => ({
          loses,
          steps: step === undefined ? steps : steps.toSpliced(isFirst ? 0 : steps.length >> 1, 0, step),
        })),
    },
  );
const turn = turnOf(
  fc.oneof({ weight: 6, arbitrary: read }, { weight: 4, arbitrary: write }),
  read.filter(([name]) => name !== 'pair'),
  watch,
  fc.constantFrom({ loses: 'requests' }, { loses: 'replies' }, { loses: 'cut', step: { kind: 'cut', key: '' } }),
);

/** As New Relic does it, and Sentry. */
export const REWRITINGS: readonly Rewriting[] = [
  { methods: ['sendCommand'] },
  { methods: ['sendCommand', 'connect'], derives: true },
];

export const watchedPrograms: fc.Arbitrary<WatchedProgram> = fc.record({
  rewriting: fc.constantFrom(undefined, undefined, ...REWRITINGS),
  keyPrefix: fc.constantFrom('', '', 'p:'),
  maxRetriesPerRequest: fc.constantFrom(20, 20, 0),
  turns: fc.array(turn, { minLength: 1, maxLength: 5, size: 'max' }),
});

/** What became of a call; those of one group are issued under the same watchers, one after the other. */
export interface Fate {
  readonly call: string;
  readonly group: string;
  readonly turn: number;
  readonly isAborted: boolean;
  outcome: string;
}

export interface Watched {
  readonly client: Client;
  /** The prototypes of this client alone, over that of its class, and of a Cluster's nodes. */
  readonly classes: { readonly class: object; readonly nodes: object };
  readonly isPlain: boolean;
  attachAnew(): void;
  /** Before each turn. */
  begin(index: number): Promise<unknown>;
  change(step: Step & { kind: 'cut' | 'view' | 'move' }): unknown;
  lose(what: 'requests' | 'replies', sent: string): Promise<void>;
  /** How many commands await their replies. */
  left(): number;
  /** After each turn. */
  end?(): Promise<unknown>;
}

const OWN = /^(hello|info|client|auth|select|pttl|cluster|ping|migrate)$/i;
const channel = tracingChannel<string, { command: string }>('ioredis:command');
const rewritten = namedChannel(channelOf('sendCommand'));
const EVENTS = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;

/**
 * Runs a program, of a name that none before had; returns the fates in the order of the calls, the settled ones in
 * theirs, and what watchers saw in each turn.
 */
export async function runWatched(of: Watched, { turns }: WatchedProgram, name: string, patience: number) {
  const { client, classes } = of;
  const fates = new Fates<Fate>(shown);
  const seen: unknown[] = [];
  const seenIn: unknown[][] = [];
  const placeAt = (target: object) => ({
    target: target as Record<string, unknown>,
    stack: [] as PropertyDescriptor[],
  });
  const places = { class: placeAt(classes.class), own: placeAt(client), nodes: placeAt(classes.nodes) };
  const seenByNodes = { push: ([event, ...rest]: unknown[]) => seen.push([`nodes ${event}`, ...rest]) } as unknown[];
  const subscribers = Object.fromEntries(
    EVENTS.map((event) => [
      event,
      (message: unknown) => {
        const { command, args, result, error, database } = message as Record<string, unknown>;
        seen.push([`channel ${event}`, command, shown([args, result, error, database])]);
      },
    ]),
  );
  const passedRewritten = (message: unknown) => {
    const [{ name, args }] = (message as { arguments: [Command] }).arguments;
    seen.push(['rewritten', name, shown(args)]);
  };
  let subscribed = false;
  let epoch = 0;
  const takeOff = (from: Place) => {
    const { target, stack } = places[from];
    const before = stack.pop();
    if (before === undefined) return;
    Reflect.deleteProperty(target, 'sendCommand');
    if ('value' in before) Object.defineProperty(target, 'sendCommand', before);
  };
  const subscribe = (to: boolean) => {
    if (subscribed === to) return;
    subscribed = to;
    channel[to ? 'subscribe' : 'unsubscribe'](subscribers as never);
    rewritten[to ? 'subscribe' : 'unsubscribe'](passedRewritten);
  };
  const apply = (what: Watch) => {
    epoch += 1;
    if (what === 'subscribe' || what === 'unsubscribe') subscribe(what === 'subscribe');
    else if (what === 'attach anew') of.attachAnew();
    else if ('off' in what) takeOff(what.off);
    else {
      const { target, stack } = places[what.place];
      stack.push(Object.getOwnPropertyDescriptor(target, 'sendCommand') ?? {});
      const made = LAYERS[what.on](what.place === 'nodes' ? seenByNodes : seen)(target.sendCommand as never);
      Object.defineProperty(target, 'sendCommand', { value: made, writable: true, configurable: true });
    }
  };
  /** What was aborted has its reply, too. */
  const answered = async () => {
    for (let tries = 0; of.left() > 0 && tries < 1_000; tries += 1) await new Promise((go) => setTimeout(go, 1));
  };
  for (const [index, { loses, steps }] of turns.entries()) {
    await of.begin(index);
    fates.nextTurn();
    const last = `last ${index} of ${name}`;
    const losing = loses === 'requests' || loses === 'replies' ? of.lose(loses, last) : undefined;
    const issue = (call: Call, how: Way) => {
      const fate: Fate = {
        call: canonical(call),
        group: /^(pipeline|transaction|pair|exec|multi)$/.test(call[0]) || how !== 'method' ? '' : `${index}.${epoch}`,
        turn: index,
        isAborted: how === 'aborted',
        outcome: OPEN,
      };
      fates.issue(fate, () => {
        isCalling = true;
        try {
          return makeCall(of, call, how, loses === 'nothing');
        } finally {
          isCalling = false;
        }
      });
    };
    for (const step of steps) {
      if (step.kind === 'watch') apply(step.watch);
      else if (step.kind === 'call') for (let time = 0; time < step.times; time += 1) issue(step.call, step.way);
      else if (step.kind === 'gap') {
        await pass(step.gap, fates);
        if (step.gap === 'replies') await answered().then(() => pass('immediate', fates));
      } else if (step.kind === 'cut') of.change(step);
      else await of.change(step);
    }
    epoch += 1;
    issue(['echo', last], 'method');
    await losing;
    if (!(await fates.within(patience))) break;
    await answered();
    await of.end?.();
    seenIn.push(seen.splice(0));
  }
  subscribe(false);
  for (const from of ['class', 'own', 'nodes'] as const) while (places[from].stack.length > 0) takeOff(from);
  return { fates: fates.all, settled: fates.settled, seen: seenIn };
}

function makeCall({ client, isPlain }: Watched, [name, ...args]: Call, how: Way, mayAbort: boolean): unknown {
  const methods = client as unknown as Record<string, (...given: unknown[]) => unknown>;
  if (name === 'multi') return client.multi({ pipeline: false });
  if (name === 'pipeline' || name === 'transaction') {
    const begun = name === 'pipeline' ? client.pipeline() : client.multi();
    for (const each of args) begun.get(each as string);
    return begun.incr('n').exec();
  }
  if (how === 'callback') {
    return new Promise((resolve) => {
      const called = (...given: unknown[]) => resolve(['called', ...given]);
      (methods[name]?.(...args, called) as Promise<unknown>)?.catch?.(() => {});
    });
  }
  if (how === 'call' && !name.endsWith('Buffer') && name !== 'pair') return client.call(name, ...(args as string[]));
  if (how === 'aborted' && !isPlain && mayAbort) {
    const abort = new AbortController();
    const view = (client as never as { coalescer: { withOptions(options: object): typeof methods } }).coalescer;
    const settled = view.withOptions({ signal: abort.signal })[name]?.(...args);
    queueMicrotask(() => abort.abort());
    return settled;
  }
  return methods[name]?.(...args);
}

/** Without `previousErrors`: that of a transaction may hold itself. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(shown).join(', ')}]`;
  if (!(value instanceof Error)) return canonical(value);
  const { name, message, command } = value as Error & { command?: unknown };
  return canonical([value.constructor.name, name, message, command]);
}

async function pass(gap: (Step & { kind: 'gap' })['gap'], fates: Fates<Fate>): Promise<void> {
  if (gap === 'microtask') await Promise.resolve();
  if (gap === 'nextTick') await new Promise<void>((go) => process.nextTick(go));
  if (gap === 'immediate') await new Promise<void>((go) => setImmediate(go));
  if (gap === 'replies') await fates.within(3_000);
}

/**
 * The lines of each kind in order, without the commands of handshakes.
 *
 * @param chance - the events whose order is chance: which replies share a chunk; promises of some settle a step later.
 */
export function byEvent(seen: readonly unknown[], chance = /fulfilled|failed|async|error/): string {
  const found: Record<string, string[]> = {};
  for (const line of seen) {
    const [event, name, ...rest] = line as [string, string, ...unknown[]];
    if (OWN.test(name)) continue;
    found[event] ??= [];
    found[event].push(canonical([name, ...rest]));
  }
  return Object.keys(found)
    .sort()
    .map((event) => {
      const lines = found[event] as string[];
      return `${event}: ${(chance.test(event) ? lines.sort() : lines).join('\n  ')}`;
    })
    .join('\n');
}
