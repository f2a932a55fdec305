import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { expect, it, onTestFinished } from 'vitest';
import { keepAwake } from '../../bench/suite/spinner.js';
import { until } from '../helpers/hosts.js';

const SCHED_IDLE = '5';

/** The scheduling classes of this process's children, by proc(5). */
function childrensClasses(): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // What follows the name, which may hold spaces, begins with field 3.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return fields[1] === `${process.pid}` ? [fields[38] ?? ''] : [];
    } catch {
      // It has ended meanwhile.
      return [];
    }
  });
}

it.runIf(process.platform === 'linux')(
  '--awake runs a process of the idle scheduling class on each processor',
  async () => {
    const before = childrensClasses().length;
    const stop = keepAwake();
    onTestFinished(stop);
    const idle = () => childrensClasses().filter((each) => each === SCHED_IDLE).length;
    await until(() => idle() === availableParallelism(), 'a spinner per processor');
    stop();
    await until(() => childrensClasses().length === before, 'the spinners to end');
    expect(idle()).toBe(0);
  },
);
