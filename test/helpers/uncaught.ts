import { onTestFinished } from 'vitest';

/** Collects what surfaces as an uncaught exception until the running test ends, in place of the test runner. */
export function collectUncaught(): Error[] {
  const errors: Error[] = [];
  const listeners = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => errors.push(error));
  onTestFinished(() => {
    process.removeAllListeners('uncaughtException');
    for (const listener of listeners) process.on('uncaughtException', listener);
  });
  return errors;
}
