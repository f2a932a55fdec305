import type { Client } from '../hosts.js';

/** What a client's users can see of it, in a form that compares equal for two clients that behave the same. */
export interface Transcript {
  /** Events and remarks, in the order in which they came. */
  readonly story: readonly string[];
  /** What each promise came to, in the order in which they were made. */
  readonly replies: readonly string[];
  /**
   * The names of the promises in the order in which they settled, without those of pipelines, transactions and
   * defined commands: they take a few steps more, and whether a later command is faster depends on how replies share
   * packets.
   */
  readonly settled: readonly string[];
}

const MANY_STEPS = /pipeline|multi|exec|defined/;
const EVENTS = ['connect', 'ready', 'close', 'reconnecting', 'end', 'wait'] as const;

/** How long what is expected to stay open is watched, and how long what is expected to settle is waited for. */
const OPEN_FOR = 300;
const SETTLES_WITHIN = 8_000;

/** The clock of module load, for scenarios that turn a fake one. */
const { setTimeout, clearTimeout } = globalThis;

export class Recorder {
  readonly #story: string[] = [];
  readonly #replies: { readonly name: string; outcome: string }[] = [];
  readonly #settled: string[] = [];
  #onSettled: (() => void) | undefined;

  watch(client: Client, name: string): void {
    for (const event of EVENTS) client.on(event, () => this.note(`${name}: ${event}`));
    client.on('error', (error: Error) => this.note(`${name}: error ${describeError(error)}`));
  }

  note(what: string, value?: unknown): void {
    this.#story.push(value === undefined ? what : `${what}: ${describeValue(value)}`);
  }

  /** Follows a promise; returns one that resolves when it has settled, however it did. */
  track(name: string, promise: Promise<unknown>): Promise<void> {
    const reply = { name, outcome: 'open' };
    this.#replies.push(reply);
    const settle = (outcome: string): void => {
      // A second one would show.
      reply.outcome = reply.outcome === 'open' ? outcome : `${reply.outcome}, then ${outcome}`;
      if (!MANY_STEPS.test(name)) this.#settled.push(name);
      this.#onSettled?.();
    };
    return promise.then(
      (value) => settle(describeValue(value)),
      (error: unknown) => settle(describeError(error)),
    );
  }

  get open(): number {
    return this.#replies.filter(({ outcome }) => outcome === 'open').length;
  }

  /** Resolves when all but `open` promises have settled; those are then watched a while longer. */
  async settle(open: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, SETTLES_WITHIN);
      const onSettled = (): void => {
        if (this.open <= open) done();
      };
      function done(): void {
        clearTimeout(timer);
        resolve();
      }
      this.#onSettled = onSettled;
      onSettled();
    });
    if (open > 0) await new Promise((resolve) => setTimeout(resolve, OPEN_FOR));
  }

  transcript(leftOut: readonly string[] = []): Transcript {
    return {
      story: this.#story.filter((line) => !leftOut.some((start) => line.startsWith(start))),
      replies: this.#replies.map(({ name, outcome }) => `${name} → ${outcome}`),
      settled: [...this.#settled],
    };
  }
}

/** As text, Buffers told from strings; the port of a proxy is another one in each run. */
export function describeValue(value: unknown, within: readonly Error[] = []): string {
  const text = JSON.stringify(value, (_key, inner: unknown) => {
    if (inner instanceof Error) return describeError(inner, within);
    if (isBufferJson(inner)) return `<${Buffer.from(inner.data).toString('latin1')}>`;
    return inner === undefined ? 'undefined' : inner;
  });
  return text.replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT');
}

function isBufferJson(value: unknown): value is { data: number[] } {
  return typeof value === 'object' && value !== null && (value as { type?: unknown }).type === 'Buffer';
}

/**
 * What tells of a circumstance, not of the error: ports, the whole certificate of a peer, and, host: in a `ParserError`
 * of redis-parser, the bytes that the parser held, which depends on how replies share packets.
 */
const INCIDENTAL = new Set(['stack', 'message', 'port', 'buffer', 'offset', 'cert']);

/** Its class, message and every other property of its own. */
export function describeError(error: unknown, within: readonly Error[] = []): string {
  if (!(error instanceof Error)) return `thrown ${describeValue(error)}`;
  // Host: errors are listed among their own `previousErrors`.
  if (within.includes(error)) return 'itself';
  const own = Object.fromEntries(
    Object.getOwnPropertyNames(error)
      .filter((name) => !INCIDENTAL.has(name))
      .sort()
      .map((name) => [name, (error as unknown as Record<string, unknown>)[name]]),
  );
  const message = error.message.replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT');
  return `${error.constructor.name}/${error.name}: ${message} ${describeValue(own, [...within, error])}`;
}
