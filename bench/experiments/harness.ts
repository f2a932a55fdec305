import { BenchServer } from '../suite/bench-server.js';
import type { Bundle } from '../suite/bundle.js';
import { DelayProxy } from '../suite/delay-proxy.js';
import { MissingError } from '../suite/environment.js';
import type { Progress } from '../suite/progress.js';
import { VariantProcess } from '../suite/variant-process.js';
import type { ClientOptions, Measurements, VariantId } from '../variants/protocol.js';
import { cellsOf, type Grid, Readings } from './readings.js';

interface Context {
  readonly server: BenchServer;
  readonly bundle: Bundle;
  readonly smoke: boolean;
  readonly rounds: number;
  readonly progress: Progress;
  readonly notes: Set<string>;
}

interface OpenOptions {
  readonly options?: ClientOptions;
  readonly server?: BenchServer;
  /** Where not the server's own: a proxy in front of it. */
  readonly url?: string;
}

/** What experiments are made of: servers, delays, clients in processes of their own, and rounds. */
export class Harness {
  readonly smoke: boolean;
  /** Of a timed measurement. */
  readonly seconds: number;
  /** The run's own. */
  readonly server: BenchServer;
  readonly bundle: Bundle;
  readonly notes: Set<string>;
  readonly #progress: Progress;
  readonly #rounds: number;
  readonly #closing: (() => Promise<void>)[] = [];
  readonly #variants = new Set<VariantProcess>();
  #title = '';
  #stepsLeft = 0;

  constructor({ server, bundle, smoke, rounds, progress, notes }: Context) {
    this.server = server;
    this.bundle = bundle;
    this.smoke = smoke;
    this.notes = notes;
    this.seconds = smoke ? 0.03 : 0.35;
    this.#progress = progress;
    this.#rounds = smoke ? 1 : Math.min(3, rounds);
  }

  begin(title: string, steps: number): void {
    this.#title = title;
    this.#stepsLeft = steps;
  }

  /** Fewer of something where it only has to run. */
  some<T>(values: readonly T[]): readonly T[] {
    return this.smoke && values.length > 2 ? [values[0]!, values.at(-1)!] : values;
  }

  /** A number that is smaller where it only has to run. */
  count(full: number, smoke: number): number {
    return this.smoke ? smoke : full;
  }

  async startServer(args: readonly string[] = []): Promise<BenchServer> {
    const server = await BenchServer.start({ args });
    this.keep(() => server.close());
    return server;
  }

  /** The URL of the run's server, so far away. */
  async delayed(roundTripMs: number): Promise<string> {
    if (roundTripMs === 0) return this.server.url;
    const proxy = await DelayProxy.open(this.server.url, roundTripMs);
    this.keep(() => proxy.close());
    return proxy.url;
  }

  async open(variant: VariantId, { options = {}, server = this.server, url = server.url }: OpenOptions = {}) {
    const opened = await VariantProcess.open(variant, this.bundle.files.variant, server, options, url);
    this.#variants.add(opened);
    return opened;
  }

  /** By its name; nothing where the package does not have it yet, and a note. */
  async openIfSupported(variant: VariantId, options: OpenOptions): Promise<Readonly<Record<string, VariantProcess>>> {
    try {
      return { [variant]: await this.open(variant, options) };
    } catch (error) {
      if (!(error instanceof MissingError)) throw error;
      this.notes.add(`${error.message}: not measured.`);
      return {};
    }
  }

  /** A process for each of the names, at once. */
  async openEach<T>(names: readonly T[], open: (name: T) => Promise<VariantProcess>): Promise<Map<T, VariantProcess>> {
    return new Map(await Promise.all(names.map(async (name) => [name, await open(name)] as const)));
  }

  keep(close: () => Promise<void>): void {
    this.#closing.push(close);
  }

  /** All of the grid once in every round, in rotated order; a first pass is not counted. */
  async measure(grid: Grid, options: { rounds?: number; warmUp?: boolean } = {}): Promise<Readings> {
    const cells = cellsOf(grid);
    const rounds = this.smoke ? 1 : (options.rounds ?? this.#rounds);
    const found = new Map<string, Measurements[]>(cells.map(({ id }) => [id, []]));
    for (let round = options.warmUp === false || this.smoke ? 1 : 0; round <= rounds; round += 1) {
      const first = round % Math.max(1, cells.length);
      for (const cell of [...cells.slice(first), ...cells.slice(0, first)]) {
        const which = round === 0 ? 'warm-up' : `round ${round} of ${rounds}`;
        this.#progress.show(this.#title, `${cell.id}, ${which}`);
        const measured = await cell.run();
        if (round > 0) found.get(cell.id)?.push(measured);
        this.#step();
      }
    }
    return new Readings(grid, found);
  }

  /** Runs something, and says what CPU the server spent meanwhile, in all and per command. */
  async withServerCpu(run: () => Promise<Measurements>, server = this.server): Promise<Measurements> {
    const before = await server.cpuUs();
    const measured = await run();
    const serverCpuUs = (await server.cpuUs()) - before;
    const { commands } = measured;
    const perCommand = typeof commands === 'number' ? { serverCpuPerCommand: serverCpuUs / commands } : {};
    return { ...measured, serverCpuUs, ...perCommand };
  }

  /** Ends the variants that were opened, and leaves the rest. */
  async closeVariants(): Promise<void> {
    for (const variant of this.#variants) {
      this.#variants.delete(variant);
      await variant.close();
    }
  }

  /** Ends everything that was opened since the last time. */
  async close(): Promise<void> {
    for (const variant of this.#variants) variant.kill();
    this.#variants.clear();
    for (const close of this.#closing.splice(0).reverse()) await close();
    this.#progress.show(this.#title, 'done', this.#stepsLeft);
    this.#stepsLeft = 0;
  }

  /** For a variant that was killed on purpose. */
  forget(variant: VariantProcess): void {
    this.#variants.delete(variant);
  }

  #step(): void {
    if (this.#stepsLeft === 0) return;
    this.#stepsLeft -= 1;
    this.#progress.show(this.#title, '', 1);
  }
}
