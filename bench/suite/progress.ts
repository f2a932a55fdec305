import { Presets, SingleBar } from 'cli-progress';

/** A bar on a terminal; elsewhere a line for each benchmark, or for each step if there are no benchmarks. */
export class Progress {
  readonly #bar: SingleBar | undefined;
  #title = '';

  constructor(steps: number) {
    if (!process.stderr.isTTY) return;
    // Drawn seldom: the cores belong to what is measured.
    const options = {
      format: '{bar} {percentage}% | {label}',
      fps: 2,
      hideCursor: true,
      gracefulExit: false,
      stream: process.stderr,
    };
    this.#bar = new SingleBar({ ...options, clearOnComplete: true }, Presets.shades_classic);
    this.#bar.start(steps, 0, { label: '' });
  }

  /** @param done how many steps were finished since the last call */
  show(title: string, detail = '', done = 0): void {
    if (this.#bar !== undefined) {
      this.#bar.increment(done, { label: detail === '' ? title : `${title} · ${detail}` });
    } else if (title !== this.#title) {
      process.stderr.write(`${title}\n`);
    }
    this.#title = title;
  }

  stop(): void {
    this.#bar?.stop();
  }
}
