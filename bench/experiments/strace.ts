import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { run as runTool } from '../suite/tool.js';

const ATTACH_TIMEOUT_MS = 5000;

/** How many system calls the process makes while something runs; not a number where there is no strace, or it may not look. */
export async function straced(pid: number, run: () => Promise<unknown>): Promise<number> {
  const found = await runTool('strace', ['-V']).catch(() => undefined);
  if (found === undefined) return Number.NaN;
  const folder = await mkdtemp(join(tmpdir(), 'ioredis-coalesce-strace-'));
  const file = join(folder, 'calls');
  const strace = spawn('strace', ['-f', '-c', '-U', 'calls,name', '-o', file, '-p', String(pid)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(strace, 'close');
  try {
    // It says so when it is attached, or why it is not.
    const said = await Promise.race([
      once(strace.stderr, 'data').then(String),
      ended.then(() => 'ended'),
      sleep(ATTACH_TIMEOUT_MS, 'silent'),
    ]);
    if (!said.includes('attached')) return Number.NaN;
    await run();
    strace.kill('SIGINT');
    await ended;
    return Number(/^\s*(\d+)\s+total$/m.exec(await readFile(file, 'utf8'))?.[1]);
  } finally {
    strace.kill('SIGKILL');
    await ended;
    await rm(folder, { recursive: true, force: true });
  }
}
