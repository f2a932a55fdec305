import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const HERE = fileURLToPath(new URL('.', import.meta.url));

/** Why something cannot be measured on this machine, or with its server. */
export class MissingError extends Error {}

export const run = promisify(execFile);

/** @throws {MissingError} where the tool is not on PATH */
export async function findTool(name: string): Promise<void> {
  await run(name, ['--version']).catch(() => {
    throw new MissingError(`${name} is not on PATH`);
  });
}

/** What git says, in this repository. */
export async function git(...args: string[]): Promise<string> {
  return (await run('git', args, { cwd: HERE })).stdout.trim();
}
