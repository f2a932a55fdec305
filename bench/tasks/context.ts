import type { OpenVariant } from '../variants/clients.js';
import type { ClientOptions, Measurements } from '../variants/protocol.js';

export interface TaskContext {
  readonly client: OpenVariant['client'];
  /** One more client of the same kind; the task closes it. */
  open(options?: ClientOptions): Promise<OpenVariant>;
  readonly url: string;
  readonly prefix: string;
  readonly options: Readonly<Record<string, unknown>>;
}

export type Task = (context: TaskContext) => Promise<Measurements>;

export function numberOption({ options }: TaskContext, name: string): number {
  const value = options[name];
  if (typeof value === 'number') return value;
  throw new TypeError(`option ${name} of the task should be a number, got ${JSON.stringify(value)}`);
}

export function textOption({ options }: TaskContext, name: string): string {
  const value = options[name];
  if (typeof value === 'string') return value;
  throw new TypeError(`option ${name} of the task should be a text, got ${JSON.stringify(value)}`);
}

/** What a stretch of work took. */
export class Stopwatch {
  readonly #cpu = process.cpuUsage();
  readonly #start = performance.now();

  figures(commands: number): { commands: number; seconds: number; perSecond: number; cpuUs: number } {
    const seconds = (performance.now() - this.#start) / 1000;
    const { user, system } = process.cpuUsage(this.#cpu);
    return { commands, seconds, perSecond: commands / seconds, cpuUs: (user + system) / commands };
  }
}

/** So many loops, each of which does its next step as soon as the one before is done, for about `seconds`. */
export async function loopsFor(
  count: number,
  seconds: number,
  step: (loop: number) => Promise<unknown>,
): Promise<number> {
  const until = performance.now() + seconds * 1000;
  let running = true;
  let steps = 0;
  await Promise.all(
    Array.from({ length: count }, async (_, loop) => {
      while (running) {
        await step(loop);
        steps += 1;
        if (loop === 0 && performance.now() >= until) running = false;
      }
    }),
  );
  return steps;
}
