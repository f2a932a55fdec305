/** What must be undone, however a run ends: last in, first out; one failure does not keep the rest from being undone. */
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
