import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { bundled } from '../helpers/bundled.js';

const CLI = await bundled(fileURLToPath(new URL('../../cli/main.ts', import.meta.url)));

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningCli {
  readonly finished: Promise<Finished>;
  signal(name: NodeJS.Signals): void;
}

/** The command as a user starts it, in its own process, with a terminal on neither side. */
export function startCli(args: readonly string[], env: Record<string, string> = {}): RunningCli {
  const { REDIS_URL: _, ...inherited } = process.env;
  const child = spawn(process.execPath, [CLI, ...args], {
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  return {
    finished: new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code) => resolve({ code, stdout, stderr }));
    }),
    signal: (name) => child.kill(name),
  };
}

export function runCli(args: readonly string[], env?: Record<string, string>): Promise<Finished> {
  return startCli(args, env).finished;
}
