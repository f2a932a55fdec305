import { cold } from '../cold.js';
import type { Client } from '../hosts.js';
import type { Random } from './random.js';
import { countError, follow, type Tally } from './tally.js';

export interface WorkerOptions {
  readonly client: Client;
  readonly random: Random;
  readonly tally: Tally;
  readonly prefix: string;
  /** Whether the server forgets what it acknowledged. */
  readonly losesData: boolean;
  /** How often what was in flight may have been sent again so far. */
  readonly reconnects: () => number;
  /** Milliseconds after which a worker goes on without the replies it waits for. @default it waits for ever */
  readonly patience?: number | undefined;
}

type Check = (reply: unknown) => string | undefined;

const FILLERS = ['', '\r\n+OK\r\n', 'ü€𝄞', 'x'.repeat(900)];
const STEP_BASE = 1_000_003;
const ECHO_SCRIPT = 'return {KEYS[1], ARGV[1]}';

/**
 * One caller among many on one client. Every value that it writes names its key and a version, its counter goes up in
 * steps of its own, and every reply is held against that: another caller's reply cannot pass.
 */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #name: string;
  readonly #counter: string;
  readonly #step: number;
  /** The newest version of each key that was sent, and of its writes whether one was acknowledged. */
  readonly #issued = new Map<string, number>();
  readonly #stored = new Set<string>();
  #additions = 0;
  #echoes = 0;

  constructor(index: number, options: WorkerOptions) {
    this.#options = options;
    this.#name = `${options.prefix}worker ${index}`;
    this.#counter = `${this.#name}:counter`;
    this.#step = STEP_BASE + index;
  }

  async run(stopped: () => boolean): Promise<void> {
    const { random, patience } = this.#options;
    while (!stopped()) {
      const pending = Array.from({ length: random.between(1, 4) }, () => this.#issue());
      const all = Promise.all(pending);
      await (patience === undefined ? all : Promise.race([all, pause(patience)]));
      // After errors that come at once, as from an ended client, others must get a turn.
      await pause(0);
    }
  }

  #issue(): Promise<void> {
    const { client, random } = this.#options;
    const key = `${this.#name}:${random.below(3)}`;
    const hash = `${this.#name}:hash`;
    switch (random.below(14)) {
      case 0:
      case 1:
        return this.#write(key, (value) => client.set(key, value), 'OK');
      case 2:
        return this.#write(key, (value) => cold(client, 'SET', key, value), 'OK');
      case 3:
        return this.#write(hash, (value) => client.hset(hash, 'field', value), 0, 1);
      case 4:
        return this.#follow('get', client.get(key), this.#valueOf(key));
      case 5:
        return this.#follow('getBuffer', client.getBuffer(key), this.#valueOf(key));
      case 6:
        return this.#follow('get with a callback', this.#callback(key), this.#valueOf(key));
      case 7:
        return this.#follow('hget', client.hget(hash, 'field'), this.#valueOf(hash));
      case 8: {
        const keys = [0, 1, 2].map((number) => `${this.#name}:${number}`);
        return this.#follow('mget', client.mget(keys), listOf(keys.map((one) => this.#valueOf(one))));
      }
      case 9:
        return this.#follow('incrby', client.incrby(this.#counter, this.#add()), this.#counted());
      case 10: {
        const text = `${this.#name} echo ${this.#echoes++}${random.of(FILLERS)}`;
        return this.#follow('echo', client.echo(text), exactly(text));
      }
      case 11: {
        const text = `${this.#name} script ${this.#echoes++}`;
        const reply = client.call('EVAL', ECHO_SCRIPT, 1, key, text);
        return this.#follow('cold eval', reply, listOf([exactly(key), exactly(text)]));
      }
      case 12:
        return this.#transaction(key);
      default:
        return this.#pipeline(key, hash);
    }
  }

  #transaction(key: string): Promise<void> {
    const { client } = this.#options;
    const value = this.#next(key);
    const multi = client.multi().set(key, value).get(key).incrby(this.#counter, this.#add());
    return this.#follow('multi', multi.exec(), this.#results([exactly('OK'), exactly(value), this.#counted()]));
  }

  #pipeline(key: string, hash: string): Promise<void> {
    const { client } = this.#options;
    const value = this.#next(key);
    const pipeline = client.pipeline().set(key, value).get(key).hget(hash, 'field').echo(value);
    const checks = [exactly('OK'), this.#valueOf(key), this.#valueOf(hash), exactly(value)];
    return this.#follow('pipeline', pipeline.exec(), this.#results(checks));
  }

  async #write(key: string, write: (value: string) => Promise<unknown>, ...allowed: unknown[]): Promise<void> {
    await this.#follow('write', write(this.#next(key)), (reply) => {
      if (!allowed.includes(reply)) return `expected ${allowed.join(' or ')}, got ${shown(reply)}`;
      this.#stored.add(key);
      return undefined;
    });
  }

  /** A callback can be called twice, which a promise would hide. */
  #callback(key: string): Promise<unknown> {
    const { client, tally } = this.#options;
    let calls = 0;
    return new Promise((resolve, reject) => {
      client.get(key, (error, value) => {
        calls += 1;
        if (calls > 1) tally.settledTwice += 1;
        if (error) reject(error);
        else resolve(value);
      });
    });
  }

  #follow(command: string, reply: Promise<unknown>, check: Check): Promise<void> {
    return follow(this.#options.tally, `${this.#name}, ${command}`, reply, check);
  }

  #next(key: string): string {
    const version = (this.#issued.get(key) ?? 0) + 1;
    this.#issued.set(key, version);
    return textOf(key, version);
  }

  #add(): number {
    this.#additions += 1;
    return this.#step;
  }

  #counted(): Check {
    return (reply) => {
      const times = Number(reply) / this.#step;
      // What was in flight when a connection broke is sent again, and may be executed again.
      const most = this.#additions * (1 + this.#options.reconnects());
      if (Number.isInteger(times) && times >= 1 && times <= most) return undefined;
      return `expected up to ${most} times ${this.#step}, got ${shown(reply)}`;
    };
  }

  /** Any version of the key's value that was sent so far; none only if none was acknowledged before. */
  #valueOf(key: string): Check {
    const mustExist = this.#stored.has(key) && !this.#options.losesData;
    return (reply) => {
      if (reply === null) return mustExist ? `expected a value of ${key}, got null` : undefined;
      const text = Buffer.isBuffer(reply) ? reply.toString() : String(reply);
      const version = Number(text.slice(key.length + 1, text.indexOf('|', key.length + 1)));
      if (version >= 1 && version <= (this.#issued.get(key) ?? 0) && text === textOf(key, version)) return undefined;
      return `expected a value of ${key}, got ${shown(text)}`;
    };
  }

  /** The results of a pipeline or transaction, whose single errors count as errors. */
  #results(checks: readonly Check[]): Check {
    return (reply) => {
      if (!Array.isArray(reply) || reply.length !== checks.length) {
        return `expected ${checks.length} results, got ${shown(reply)}`;
      }
      for (const [index, check] of checks.entries()) {
        const [error, value] = reply[index] as [unknown, unknown];
        if (error) countError(this.#options.tally, error);
        const found = error ? undefined : check(value);
        if (found !== undefined) return `result ${index}: ${found}`;
      }
      return undefined;
    };
  }
}

function textOf(key: string, version: number): string {
  const filler = version % 40 === 0 ? `${version} `.repeat(12_000) : (FILLERS[version % FILLERS.length] as string);
  return `${key}|${version}|${filler}`;
}

function exactly(expected: string): Check {
  return (reply) => (reply === expected ? undefined : `expected ${shown(expected)}, got ${shown(reply)}`);
}

function listOf(checks: readonly Check[]): Check {
  return (reply) => {
    if (!Array.isArray(reply) || reply.length !== checks.length) {
      return `expected ${checks.length} elements, got ${shown(reply)}`;
    }
    return checks.map((check, index) => check(reply[index])).find((found) => found !== undefined);
  };
}

function shown(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : (JSON.stringify(value) ?? String(value));
  return text.length > 200 ? `${text.slice(0, 200)}… (${text.length} characters)` : text;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
