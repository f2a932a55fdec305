import { expect, it } from 'vitest';
import { commandsPerSecond, cpuPerCommand, meanBatch, modelFrom } from '../../bench/experiments/scale-model.js';

/** CPU: 40 µs per round trip, 0.5 µs per command. Time: 80 µs per round trip, 0.6 µs per further command. */
const model = modelFrom(
  { cpuUs: 40.5, perSecond: 1 / 80e-6 },
  { depth: 1000, cpuUs: 0.5 + 40 / 1000, perSecond: 1 / 0.6e-6 },
);

it('recovers the parameters from which its figures were made', () => {
  expect(model.roundTripCpuUs).toBeCloseTo(40);
  expect(model.commandCpuUs).toBeCloseTo(0.5);
  expect(cpuPerCommand(model, 1)).toBeCloseTo(40.5);
  expect(cpuPerCommand(model, 100)).toBeCloseTo(0.9);
});

it('makes a lone caller wait for the network, and many callers for each other', () => {
  expect(commandsPerSecond(model, 1, 0)).toBeCloseTo(1 / 80e-6);
  expect(commandsPerSecond(model, 1, 5)).toBeCloseTo(1 / (5e-3 + 80e-6));
  expect(commandsPerSecond(model, 100_000, 5)).toBeGreaterThan(0.9 / 0.6e-6);
});

it('never has less than one command in a batch that is not empty', () => {
  expect(meanBatch(1, 1000, 100)).toBeCloseTo(1, 3);
  expect(meanBatch(100_000, 1000, 1)).toBeCloseTo(100, 3);
});
