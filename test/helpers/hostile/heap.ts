import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

// A context that is made while the flag is set has the function, whatever the process was started with.
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

export function gc(): void {
  collect();
}

/** Bytes of live objects, after a collection. */
export function heapNow(): number {
  // What a first collection finalizes is garbage for the second one.
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

/** The same of the memory of Buffers. */
export function arrayBuffersNow(): number {
  collect();
  collect();
  return process.memoryUsage().arrayBuffers;
}
