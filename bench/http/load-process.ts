import type { Bundle } from './bundle.js';
import { Child } from './child.js';
import type { LoadAnswer, LoadRequest, LoadResult } from './types.js';

/** The load process, seen from the demo; it lives through the whole run, so that it warms up once. */
export class LoadProcess {
  readonly #child: Child;

  constructor(bundle: Bundle) {
    this.#child = new Child('the load process', bundle.load, {
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: '' },
    });
  }

  async run(request: LoadRequest): Promise<LoadResult> {
    const answer = (await this.#child.ask(request)) as LoadAnswer;
    if ('error' in answer) {
      throw new Error(answer.error);
    }
    return answer;
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }
}
