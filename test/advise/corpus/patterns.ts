/**
 * The patterns, and how they are run. A comment `// advice: …` says what may be advised for the command in the next
 * line, after the one that it waits for; a command without one waits for none, or its wait is another pattern's.
 * `together`: both may be issued at once; `argument`: an argument depends on the reply; `if`: a condition stands
 * between; `leave`: it must stay.
 */
import type { Redis } from 'ioredis-coalesce';

/** Each pattern runs as often: the conditions among them hold in some of these runs. */
export const RUNS = 12;

export interface Given {
  readonly redis: Redis;
  /** Another connection to the same server. */
  readonly other: Redis;
  /** Of all keys. */
  readonly prefix: string;
}

export type Pattern = (run: number) => unknown;
