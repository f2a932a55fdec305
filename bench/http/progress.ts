import { SingleBar } from 'cli-progress';

export interface Progress {
  /** A step begins; the one before it is done. */
  step(label: string): void;
  stop(): void;
}

/** A bar at a terminal, plain lines on stderr anywhere else. */
export function startProgress(total: number): Progress {
  return process.stdout.isTTY ? new Bar(total) : new Lines(total);
}

class Bar implements Progress {
  readonly #bar = new SingleBar({
    format: '{bar} {percentage}% | {label}',
    stream: process.stdout,
    hideCursor: true,
    clearOnComplete: true,
    gracefulExit: false,
    barsize: 30,
  });
  #begun = 0;

  constructor(total: number) {
    this.#bar.start(total, 0, { label: 'starting' });
  }

  step(label: string): void {
    this.#bar.update(this.#begun, { label });
    this.#begun += 1;
  }

  stop(): void {
    this.#bar.stop();
  }
}

class Lines implements Progress {
  readonly #total: number;
  #begun = 0;

  constructor(total: number) {
    this.#total = total;
  }

  step(label: string): void {
    this.#begun += 1;
    process.stderr.write(`[${this.#begun}/${this.#total}] ${label}\n`);
  }

  stop(): void {}
}
