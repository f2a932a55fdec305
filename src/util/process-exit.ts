import { processWide } from './process-wide.js';

/**
 * Functions to call at exit, shared by all loaded copies of the package, so that an unused copy can be collected. The
 * array is in a `Set` for Jest's sake. It is not the `Set`: what one was made of before it grew keeps each connection
 * that has ended until a full collection.
 */
const [drains = []] = processWide('drains-at-exit', () => new Set<(() => void)[]>([[]]));
/** The listener of the copy that was first: none or one. */
const listeners = processWide('exit-listeners', () => new Set<() => void>());
/** True once the process emits `exit`: what is not sent now is never sent. */
export let exiting = false;

/**
 * A process that exits sends every command it has issued, as a plain client would have done by then: pending bytes of
 * each connection are written when the process emits `exit`, and commands issued by listeners of `exit` at once.
 *
 * There is one listener, whichever number of copies of this package are loaded, and none while there are no
 * connections.
 *
 * @param send - sends those of one connection at exit, until the returned function is called.
 */
export function drainAtExit(send: () => void): () => void {
  const drain = () => {
    exiting = true;
    send();
  };
  drains.push(drain);
  if (!listens()) {
    listeners.clear();
    listeners.add(drainAll);
    // In front of others: if one throws, those behind it are not called.
    process.prependListener('exit', drainAll);
  }
  return () => {
    const index = drains.indexOf(drain);
    if (index >= 0) drains.splice(index, 1);
    if (drains.length > 0) return;
    for (const listener of listeners) process.off('exit', listener);
    listeners.clear();
  };
}

/** Other code may have removed all listeners. */
function listens(): boolean {
  const present = process.listeners('exit') as unknown[];
  return [...listeners].some((listener) => present.includes(listener));
}

function drainAll(): void {
  for (const drain of [...drains]) drain();
}
