import { Presets, SingleBar } from 'cli-progress';

/** A bar on a terminal; elsewhere a line for each row. */
export class Progress {
  readonly #bar: SingleBar | undefined;
  #row = '';

  constructor(steps: number) {
    if (!process.stderr.isTTY) return;
    // Drawn seldom: the cores belong to the arms.
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
  show(row: string, detail: string, done = 0): void {
    if (this.#bar !== undefined) {
      this.#bar.increment(done, { label: `${row} · ${detail}` });
    } else if (row !== this.#row) {
      process.stderr.write(`${row}\n`);
    }
    this.#row = row;
  }

  stop(): void {
    this.#bar?.stop();
  }
}
