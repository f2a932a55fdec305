import { expect, it } from 'vitest';
import { undisturbed } from '../../bench/suite/steal.js';

/** Of each measurement, the percentage of the processors' time that others had. */
function machine(...stolen: readonly number[]) {
  let all = 0;
  let taken = 0;
  let measurements = 0;
  const measure = async () => {
    all += 100;
    taken += stolen[measurements] ?? 0;
    measurements += 1;
    return measurements;
  };
  let preparations = 0;
  const prepareAgain = async () => void preparations++;
  const before = () => ({ preparations, measurements });
  return { measure, prepareAgain, before, times: () => ({ all, stolen: taken }) };
}

it.each<[string, number[], [figures: number, quiet: boolean]]>([
  ['keeps the first figures where nobody takes the processors', [0], [1, true]],
  ['keeps the first figures from a quiet time', [30, 2, 0], [2, true]],
  ['measures at most four times, and keeps the least disturbed figures', [30, 9, 20, 10, 0], [2, false]],
])('%s', async (_, stolen, expected) => {
  const { measure, prepareAgain, before, times } = machine(...stolen);
  expect(await undisturbed(measure, prepareAgain, 4, times)).toEqual(expected);
  const { preparations, measurements } = before();
  expect(preparations).toBe(measurements - 1);
});

it('reads the count of stolen time, or finds that this machine has none', async () => {
  const [figures] = await undisturbed(
    async () => 'figures',
    async () => {},
    1,
  );
  expect(figures).toBe('figures');
});
