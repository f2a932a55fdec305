import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { expect, it, onTestFinished } from 'vitest';
import { keepAwake } from '../../bench/suite/spinner.js';
import { until } from '../helpers/hosts.js';

const SCHED_IDLE = '5';
/** On a busy machine a spinner seldom gets a processor, also before its first step. */
const PATIENCE_MS = 50_000;

type Child = { readonly pid: string; readonly session: string; readonly schedulingClass: string };

/** This process's children, by proc(5). */
function children(): Child[] {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // What follows the name, which may hold spaces, begins with field 3.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const [, parent, , session = ''] = fields;
      return parent === `${process.pid}` ? [{ pid, session, schedulingClass: fields[38] ?? '' }] : [];
    } catch {
      // It has ended meanwhile.
      return [];
    }
  });
}

it.runIf(process.platform === 'linux')('--awake: an idle process on each processor, which yields', async () => {
  const before = children().length;
  const stop = keepAwake();
  onTestFinished(stop);
  const idle = () => children().filter(({ schedulingClass }) => schedulingClass === SCHED_IDLE);
  await until(() => idle().length === availableParallelism(), 'a spinner per processor', PATIENCE_MS);
  expect(idle().map(({ session }) => session)).toEqual(idle().map(({ pid }) => pid));
  if (existsSync('/proc/self/autogroup')) {
    const yields = ({ pid }: Child) => readFileSync(`/proc/${pid}/autogroup`, 'utf8').endsWith('nice 19\n');
    await until(() => idle().every(yields), 'the lowest weight for the session of each spinner', PATIENCE_MS);
  }
  stop();
  await until(() => children().length === before, 'the spinners to end', PATIENCE_MS);
  expect(idle()).toEqual([]);
});
