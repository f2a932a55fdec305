/** Vitest compares Buffers as objects, index by index: a second for some hundred kilobytes. */
import { expect } from 'vitest';

expect.addEqualityTesters([
  (one, other) => (one instanceof Buffer && other instanceof Buffer ? one.equals(other) : undefined),
]);
