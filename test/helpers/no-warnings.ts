/**
 * A setup file of every test file: a warning of the process that no test has announced fails the file, and none is
 * printed. So a warning that a change brings about is seen.
 */
import { setImmediate } from 'node:timers/promises';
import { afterAll, expect } from 'vitest';
import { forgetExpectedWarnings, isExpected } from './warnings.js';

const unexpected: string[] = [];
forgetExpectedWarnings();

// Node's own listener prints them.
process.removeAllListeners('warning');
process.on('warning', (warning: Error & { code?: string }) => {
  if (!isExpected(warning)) unexpected.push(`${warning.code ?? warning.name}: ${warning.message}`);
});

afterAll(async () => {
  // They are emitted in a later turn of the event loop.
  await setImmediate();
  expect(unexpected, 'warnings that no test has announced by expectWarnings()').toEqual([]);
});
