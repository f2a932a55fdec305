import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

const SLOTS = 4096;
const BYTES = 16 * 2 ** 20;
/** The places of two counters, of what came and of what is written; and one that never changes, to sleep on. */
const [CAME, WRITTEN, NEVER] = [0, 1, 2];

/**
 * The thread sleeps until the next piece is due, then writes it. `Atomics.wait` takes fractions of a millisecond,
 * unlike a timer; Linux may be late by as much as the thread's slack, 50 µs if it is not told otherwise.
 */
const THREAD = `const { readlinkSync, writeFileSync, writeSync } = require('node:fs');
const { parentPort, workerData: { counters, dueAt, writtenAt, places, bytes } } = require('node:worker_threads');
try {
  writeFileSync('/proc/' + readlinkSync('/proc/thread-self').split('/').pop() + '/timerslack_ns', '1000');
} catch {}
const now = () => Number(process.hrtime.bigint()) / 1e6;
const write = (fd, from, to) => {
  while (from < to) {
    try {
      from += writeSync(fd, bytes, from, to - from);
    } catch ({ code }) {
      if (code !== 'EAGAIN') return;
      Atomics.wait(counters, ${NEVER}, 0, 0.05);
    }
  }
};
parentPort.postMessage('ready');
for (let count = 0; ; count += 1) {
  while (Atomics.load(counters, ${CAME}) === count) Atomics.wait(counters, ${CAME}, count);
  const slot = count % ${SLOTS};
  for (let left; (left = dueAt[slot] - now()) > 0; ) Atomics.wait(counters, ${NEVER}, 0, left);
  writtenAt[slot] = now();
  write(places[3 * slot], places[3 * slot + 1], places[3 * slot + 2]);
  Atomics.store(counters, ${WRITTEN}, count + 1);
  Atomics.notify(counters, ${WRITTEN});
}`;

/** Of the system, in milliseconds: the same in all threads and processes, which `performance.now()` is not. */
export function systemNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Writes pieces to sockets at given times, in the order in which it gets them; its thread sleeps in between. */
export class TimedWriter {
  readonly #shared = {
    counters: new Int32Array(new SharedArrayBuffer(12)),
    dueAt: new Float64Array(new SharedArrayBuffer(8 * SLOTS)),
    writtenAt: new Float64Array(new SharedArrayBuffer(8 * SLOTS)),
    /** Of each piece: the descriptor, where it begins and where it ends. */
    places: new Int32Array(new SharedArrayBuffer(12 * SLOTS)),
    bytes: new Uint8Array(new SharedArrayBuffer(BYTES)),
  };
  readonly #thread = new Worker(THREAD, { eval: true, workerData: this.#shared });
  #count = 0;
  #end = 0;

  static async start(): Promise<TimedWriter> {
    const writer = new TimedWriter();
    await once(writer.#thread, 'message');
    writer.#thread.unref();
    return writer;
  }

  private constructor() {}

  /**
   * @param dueAt - as `systemNow()` says it, not before that of the piece before.
   * @returns its place, for `latenessOf`. Waits while there is no room.
   */
  write(fd: number, piece: Uint8Array, dueAt: number): number {
    const { bytes, counters, dueAt: due, places } = this.#shared;
    const begin = this.#room(piece.length);
    const slot = this.#count % SLOTS;
    this.#end = begin + piece.length;
    bytes.set(piece, begin);
    due[slot] = dueAt;
    places.set([fd, begin, this.#end], 3 * slot);
    this.#count += 1;
    Atomics.store(counters, CAME, this.#count);
    Atomics.notify(counters, CAME);
    return slot;
  }

  /** In milliseconds; known until some thousand pieces later. */
  latenessOf(slot: number): number {
    return this.#shared.writtenAt[slot]! - this.#shared.dueAt[slot]!;
  }

  async close(): Promise<void> {
    await this.#thread.terminate();
  }

  /** Where as many bytes are free: pieces lie one behind the other, from the start again where the end is too near. */
  #room(length: number): number {
    const { counters, places } = this.#shared;
    for (;;) {
      const written = Atomics.load(counters, WRITTEN);
      if (written === this.#count) return 0;
      const oldest = places[3 * (written % SLOTS) + 1]!;
      if (this.#count - written < SLOTS) {
        if (this.#end > oldest && this.#end + length <= BYTES) return this.#end;
        if (this.#end > oldest && length < oldest) return 0;
        if (this.#end <= oldest && this.#end + length < oldest) return this.#end;
      }
      Atomics.wait(counters, WRITTEN, written);
    }
  }
}
