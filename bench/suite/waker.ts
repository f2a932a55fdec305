import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

/** Timers of Node are a millisecond coarse; a blocked thread and its message are late by some 100 µs. */
const THREAD = `const { parentPort, workerData: state } = require('node:worker_threads');
parentPort.postMessage(0);
for (;;) {
  Atomics.wait(state, 0, 0);
  const microseconds = Atomics.exchange(state, 0, 0);
  Atomics.wait(state, 1, 0, microseconds / 1000);
  parentPort.postMessage(0);
}`;
/** Calls back at a time, without keeping a processor busy all the while: one time after the other. */
export class Waker {
  readonly #state = new Int32Array(new SharedArrayBuffer(8));
  readonly #thread = new Worker(THREAD, { eval: true, workerData: this.#state });
  #wake: (() => void) | undefined;

  /** @param loopingMs - the end of each wait that is spent looking at the clock, turn by turn: precise, but busy. */
  constructor(readonly loopingMs: number) {
    this.#thread.unref();
    this.#thread.on('message', () => this.#wake?.());
  }

  /** A thread takes some milliseconds to start; this one has started. */
  static async start(loopingMs: number): Promise<Waker> {
    const waker = new Waker(loopingMs);
    await once(waker.#thread, 'message');
    return waker;
  }

  /** @param at - as `performance.now()` says it. */
  call(at: number, callback: () => void): void {
    const look = () => {
      if (performance.now() >= at) callback();
      else setImmediate(look);
    };
    const microseconds = Math.floor((at - performance.now() - this.loopingMs) * 1000);
    if (microseconds <= 0) {
      look();
      return;
    }
    this.#wake = look;
    Atomics.store(this.#state, 0, microseconds);
    Atomics.notify(this.#state, 0);
  }

  async close(): Promise<void> {
    await this.#thread.terminate();
  }
}
