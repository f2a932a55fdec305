import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { LoadResult, LoadSample } from './load.js';
import type { LoadMessage, SeriesRequest } from './load-worker.js';

/** The load process, seen from the service. It lives through a run's phases, so that it warms up once. */
export class LoadProcess {
  readonly #process: ChildProcess;
  #receive: ((message: LoadMessage) => void) | undefined;
  #ended: string | undefined;

  constructor() {
    this.#process = fork(fileURLToPath(new URL('./load-worker.ts', import.meta.url)), [], {
      execArgv: ['--import', import.meta.resolve('tsx')],
      env: { ...process.env, NODE_OPTIONS: '' },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#process.on('message', (message) => this.#receive?.(message as LoadMessage));
    const end = (reason: string): void => {
      this.#ended ??= reason;
      this.#receive?.({ error: this.#ended });
    };
    this.#process.on('error', (error) => end(`the load process failed: ${error.message}`));
    this.#process.on('exit', (code, signal) => end(`the load process ended (${signal ?? `exit code ${code}`})`));
  }

  run(request: SeriesRequest, onSample: (sample: LoadSample) => void): Promise<LoadResult> {
    return new Promise((resolve, reject) => {
      const settle = (finish: () => void): void => {
        this.#receive = undefined;
        finish();
      };
      this.#receive = (message) => {
        if ('sample' in message) {
          onSample(message.sample);
        } else if ('error' in message) {
          settle(() => reject(new Error(message.error)));
        } else {
          settle(() => resolve(message.result));
        }
      };
      if (this.#ended !== undefined) {
        this.#receive({ error: this.#ended });
        return;
      }
      this.#process.send(request);
    });
  }

  stop(): void {
    this.#process.kill('SIGKILL');
  }
}
