import { cold } from '../cold.js';
import { sleep } from '../hosts.js';

/** What a load needs of a client, a Redis or a Cluster. */
interface Loaded {
  set(key: string, value: string): Promise<unknown>;
  get(key: string): Promise<unknown>;
  incr(key: string): Promise<unknown>;
  hset(key: string, field: string, value: string): Promise<unknown>;
  hget(key: string, field: string): Promise<unknown>;
  call(command: string, key: string): Promise<unknown>;
}

/** What came of a load. */
export interface Figures {
  seconds: number;
  /** Commands issued, and how many of them were answered with a value. */
  commands: number;
  answered: number;
  /** The errors that commands were rejected with, and how often. */
  errors: Record<string, number>;
  /** Replies that belong to another command. */
  misdelivered: string[];
  /** Reads that found less than what had been acknowledged before. */
  lost: number;
  /** Commands that were never settled. */
  open: number;
}

const KEYS_PER_LOOP = 10;
const SETTLES_WITHIN = 40_000;
/** In milliseconds; the loops share a processor with those who reshard the cluster meanwhile. */
const PAUSE = 5;

/**
 * Loops that never stop writing and reading keys of their own, all at once; each reply is checked against its
 * key and against the last write that was acknowledged. A value is `<key>#<number of the round>`.
 */
export class Load {
  readonly figures: Figures = { seconds: 0, commands: 0, answered: 0, errors: {}, misdelivered: [], lost: 0, open: 0 };
  readonly #client: Loaded;
  readonly #startedAt = performance.now();
  readonly #loops: Promise<void>[];
  #stopped = false;

  constructor(client: Loaded, { loops = 20, name = 'load' } = {}) {
    this.#client = client;
    this.#loops = Array.from({ length: loops }, (_, loop) => this.#run(`${name}:${loop}`));
  }

  /** Resolves when `commands` more commands were answered. */
  async more(commands: number): Promise<void> {
    const goal = this.figures.answered + commands;
    const deadline = performance.now() + SETTLES_WITHIN;
    while (this.figures.answered < goal) {
      if (performance.now() > deadline) {
        throw new Error(`expected ${commands} answers more within ${SETTLES_WITHIN} ms, got ${this.#describe()}`);
      }
      await sleep(10);
    }
  }

  /** Ends the loops, waits for what they wait for, and returns the figures. */
  async stop(): Promise<Figures> {
    this.#stopped = true;
    // A promise that stays open is what this looks for, so it cannot be waited for.
    await Promise.race([Promise.all(this.#loops), sleep(SETTLES_WITHIN)]);
    this.figures.seconds = (performance.now() - this.#startedAt) / 1000;
    return this.figures;
  }

  async #run(name: string): Promise<void> {
    const keys = Array.from({ length: KEYS_PER_LOOP }, (_, index) => `${name}:${index}`);
    /** By key: the last round whose write was acknowledged. */
    const acknowledged = new Map<string, { value: number; field: number; count: number }>();
    for (let round = 1; !this.#stopped; round += 1) {
      await Promise.all(
        keys.map(async (key) => {
          const before = acknowledged.get(key) ?? { value: 0, field: 0, count: 0 };
          const [set, hset, incr] = await Promise.all([
            this.#issue(this.#client.set(key, `${key}#${round}`)),
            this.#issue(this.#client.hset(`h:${key}`, 'field', `${key}#${round}`)),
            this.#issue(this.#client.incr(`n:${key}`)),
          ]);
          this.#expect(key, 'SET', set, set === undefined || set === 'OK');
          this.#expect(key, 'HSET', hset, hset === undefined || hset === 0 || hset === 1);
          this.#expect(key, 'INCR', incr, incr === undefined || Number.isInteger(incr));
          if (typeof incr === 'number' && incr <= before.count) this.figures.lost += 1;
          acknowledged.set(key, {
            value: set === undefined ? before.value : round,
            field: hset === undefined ? before.field : round,
            count: typeof incr === 'number' ? incr : before.count,
          });
        }),
      );
      await Promise.all(
        keys.map(async (key) => {
          const known = acknowledged.get(key) ?? { value: 0, field: 0, count: 0 };
          const [value, field, count] = await Promise.all([
            this.#issue(this.#client.get(key)),
            this.#issue(this.#client.hget(`h:${key}`, 'field')),
            // Not on the fast path.
            this.#issue(cold(this.#client, 'get', `n:${key}`)),
          ]);
          this.#compare(key, value, known.value, round);
          this.#compare(key, field, known.field, round);
          if (count !== undefined && Number(count) < known.count) this.figures.lost += 1;
          this.#expect(key, 'GET of a counter', count, count === undefined || /^\d+$/.test(String(count ?? 0)));
        }),
      );
      await sleep(PAUSE);
    }
  }

  /** Resolves with undefined if the command fails. */
  async #issue(promise: Promise<unknown>): Promise<unknown> {
    const { figures } = this;
    figures.commands += 1;
    figures.open += 1;
    try {
      const value = await promise;
      figures.answered += 1;
      return value;
    } catch (error) {
      const text = String(error).replace(/\d+\.\d+\.\d+\.\d+:\d+/g, 'node');
      figures.errors[text] = (figures.errors[text] ?? 0) + 1;
      // A client that fails at once would otherwise keep the loops, and nothing else, running.
      await sleep(1);
      return undefined;
    } finally {
      figures.open -= 1;
    }
  }

  #compare(key: string, reply: unknown, acknowledged: number, round: number): void {
    if (reply === undefined) return;
    if (reply === null) {
      if (acknowledged > 0) this.figures.lost += 1;
      return;
    }
    const [owner, number] = String(reply).split('#');
    this.#expect(key, 'read', reply, owner === key && Number(number) <= round);
    if (Number(number) < acknowledged) this.figures.lost += 1;
  }

  #expect(key: string, what: string, reply: unknown, holds: boolean): void {
    if (!holds) this.figures.misdelivered.push(`${what} of ${key}: ${String(reply)}`);
  }

  #describe(): string {
    return JSON.stringify(this.figures);
  }
}

export function printFigures(what: string, figures: Figures): void {
  const { seconds, commands, answered, errors, misdelivered, lost, open } = figures;
  const failed = Object.values(errors).reduce((sum, count) => sum + count, 0);
  console.log(
    `${what}: ${commands} commands in ${seconds.toFixed(1)} s, ${answered} answered, ${failed} failed, ` +
      `${lost} lost, ${misdelivered.length} mis-delivered, ${open} open${failed ? ` ${JSON.stringify(errors)}` : ''}`,
  );
}
