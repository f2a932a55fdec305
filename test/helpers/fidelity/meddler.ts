import { tracingChannel } from 'node:diagnostics_channel';
import { CHANNELS, type Coalesced, type CoalesceOptions, coalesce } from 'ioredis-coalesce';
import { cold } from '../cold.js';
import { type Random, seeded } from '../hostile/random.js';
import { COMMANDS } from './counting-transformers.js';
import { type Client, type Host, invoke } from './variants.js';

/** Commands whose replies the hosts do not transform. */
const TRANSFORMED = ['get', 'set', 'append', 'incr', 'hget', 'hset', 'mget', 'rpush', 'lrange', 'exists', 'eval'];

/**
 * User code that runs when a batch is flushed or scheduled, or a reply is transformed: it sends, flushes, detaches and
 * throws on the same client. What it sends changes nothing on the server, and each of its own commands must be answered
 * with what it asked for.
 */
export class Meddler {
  client: Client | undefined;
  readonly errors: string[] = [];
  readonly #options: CoalesceOptions;
  #random: Random = seeded(0);
  /** What it may still do in this program: each of its commands makes a batch of its own. */
  #budget = 0;
  #sent = 0;
  readonly #open = new Set<Promise<void>>();
  readonly #channel = tracingChannel(CHANNELS.BATCH);

  constructor(
    readonly as: 'subscriber' | 'schedule' | 'transformer',
    options: CoalesceOptions,
    readonly host: Host,
  ) {
    this.#options = as === 'schedule' ? { ...options, schedule: this.#schedule } : options;
  }

  /** Options for `coalesce()` of the client under test. */
  get options(): CoalesceOptions {
    return this.#options;
  }

  begin(seed: number): void {
    this.#random = seeded(seed);
    this.#budget = 12;
    if (this.as === 'subscriber') this.#channel.subscribe({ start: this.#meddle, end: this.#meddle } as never);
    if (this.as !== 'transformer') return;
    for (const name of TRANSFORMED) {
      COMMANDS[this.host].setReplyTransformer(name, (reply) => {
        this.#meddle();
        return reply;
      });
    }
  }

  /** Ends when its own commands are answered; returns what was wrong about them. */
  async end(): Promise<string[]> {
    this.#budget = 0;
    if (this.as === 'subscriber') this.#channel.unsubscribe({ start: this.#meddle, end: this.#meddle } as never);
    if (this.as === 'transformer') {
      for (const name of TRANSFORMED) Reflect.deleteProperty(COMMANDS[this.host]._transformer.reply, name);
    }
    await Promise.race([Promise.all(this.#open), new Promise((resolve) => setTimeout(resolve, 2_000))]);
    if (this.#open.size > 0) this.errors.push(`${this.#open.size} of the meddler's commands are still open`);
    return this.errors.splice(0);
  }

  readonly #meddle = (): void => {
    const { client } = this;
    if (client === undefined || this.#budget === 0 || !this.#random.oneIn(2)) return;
    this.#budget -= 1;
    const { coalescer } = client as unknown as Coalesced;
    switch (this.#random.below(9)) {
      case 0:
        coalescer?.flush();
        break;
      case 1:
        coalescer?.detach();
        coalesce(client, this.#options);
        break;
      case 2:
        this.#send((text) => invoke(client, 'call', ['ECHO', text]));
        break;
      case 3:
        this.#send(async (text) => {
          const chain = invoke(client, 'pipeline', []) as Client;
          invoke(chain, 'echo', [text]);
          return ((await invoke(chain, 'exec', [])) as [unknown, unknown][])[0]?.[1];
        });
        break;
      case 4:
        // By the host.
        this.#send((text) => cold(client, 'ECHO', text));
        break;
      case 5:
        // Longer than `maxBatchBytes` of some variants.
        this.#send((text) => invoke(client, 'echo', [text]), 'é€'.repeat(40));
        break;
      default:
        this.#send((text) => invoke(client, 'echo', [text]));
    }
  };

  readonly #schedule = (flush: () => void): void => {
    this.#meddle();
    switch (this.#random.below(5)) {
      case 0:
        flush();
        break;
      case 1:
        process.nextTick(flush);
        break;
      case 2:
        queueMicrotask(flush);
        break;
      default:
        setImmediate(flush);
    }
  };

  #send(send: (text: string) => unknown, padding = ''): void {
    this.#sent += 1;
    const text = `meddled ${this.#sent} ${padding}`;
    const settled = Promise.resolve(send(text)).then(
      (value) => {
        if (value !== text) this.errors.push(`the meddler's "${text}" was answered with ${JSON.stringify(value)}`);
        this.#open.delete(settled);
      },
      (error: Error) => {
        this.errors.push(`the meddler's "${text}" failed: ${error.message}`);
        this.#open.delete(settled);
      },
    );
    this.#open.add(settled);
  }
}
