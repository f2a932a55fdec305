import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * What must be undone, however a run ends: last in, first out; one failure does not keep the rest from being undone.
 */
export class Cleanup {
  readonly #steps: (() => Promise<void>)[] = [];
  #running: Promise<void> | undefined;

  /** Once cleaning has begun, what is added is undone at once. */
  async add(step: () => Promise<void>): Promise<void> {
    if (this.#running) {
      await step();
      throw new Error('the run is being stopped');
    }
    this.#steps.push(step);
  }

  /** Idempotent. */
  run(): Promise<void> {
    this.#running ??= this.#undo();
    return this.#running;
  }

  async #undo(): Promise<void> {
    const failures: unknown[] = [];
    for (const step of this.#steps.reverse()) {
      await step().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) {
      throw new AggregateError(failures, `cleaning up failed: ${failures.map(String).join('; ')}`);
    }
  }
}

/**
 * Runs something that leaves nothing behind, no keys and no processes, whether it ends by itself or by a signal. A
 * second signal ends it at once.
 *
 * @param farewell - what is said where a signal is the usual end.
 */
export async function cleanly<T>(run: (cleanup: Cleanup) => Promise<T>, farewell?: string): Promise<T> {
  const cleanup = new Cleanup();
  let interrupted = false;
  const interrupt = (signal: NodeJS.Signals): void => {
    interrupted = true;
    // What the ended processes make fail is of no interest any more.
    process.on('uncaughtException', () => {});
    const leave = () => {
      if (farewell === undefined) console.error(`\ninterrupted by ${signal}; processes and keys are cleaned up`);
      else console.log(farewell);
      process.exit(farewell === undefined ? 128 + constants.signals[signal] : 0);
    };
    cleanup.run().then(leave, leave);
  };
  for (const signal of SIGNALS) process.once(signal, interrupt);
  try {
    return await run(cleanup);
  } catch (error) {
    // What fails after an interruption fails because of it, and the process is about to end.
    if (interrupted) await new Promise(() => {});
    throw error;
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupt);
    await cleanup.run();
  }
}
