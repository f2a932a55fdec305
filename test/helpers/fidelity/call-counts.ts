import { Counted } from './program-values.js';

/** What users attach to arguments, made anew for each call, and how often it was run. */
export class CallCounts {
  readonly #reads: number[] = [];

  /** The argument itself, or what a `Counted` one stands for: its members are read where the arguments are used. */
  made(argument: unknown): unknown {
    if (!(argument instanceof Counted)) return argument;
    const index = this.#reads.push(0) - 1;
    const read = (): string => {
      this.#reads[index] = (this.#reads[index] ?? 0) + 1;
      return `read ${this.#reads[index]}`;
    };
    if (argument.form === 'text') return { toString: read };
    return Object.defineProperty(argument.plain ? {} : { flag: true }, 'counted', { get: read, enumerable: true });
  }

  /** How often each was read, in the order in which they were made. */
  get reads(): readonly number[] {
    return this.#reads;
  }
}
