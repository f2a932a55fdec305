import { onTestFinished } from 'vitest';

/** Collects what surfaces as an uncaught exception until the running test ends, in place of the test runner. */
export function collectUncaught(event: 'uncaughtException' | 'unhandledRejection' = 'uncaughtException'): Error[] {
  const errors: Error[] = [];
  const listeners = process.listeners(event as 'uncaughtException');
  process.removeAllListeners(event);
  process.on(event, (error: Error) => errors.push(error));
  onTestFinished(() => {
    process.removeAllListeners(event);
    for (const listener of listeners) process.on(event, listener);
  });
  return errors;
}
