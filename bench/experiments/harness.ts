import { BenchServer } from '../suite/bench-server.js';
import type { Bundle } from '../suite/bundle.js';
import { Cleanup } from '../suite/cleanup.js';
import { DelayProxy } from '../suite/delay-proxy.js';
import { MissingError } from '../suite/environment.js';
import type { Progress } from '../suite/progress.js';
import { rotated } from '../suite/runner.js';
import { VariantProcess } from '../suite/variant-process.js';
import type { VariantId } from '../variants/clients.js';
import type { ClientOptions, Measurements } from '../variants/protocol.js';
import { type Axes, cellId, Readings } from './readings.js';

interface Context {
  readonly server: BenchServer;
  readonly bundle: Bundle;
  readonly smoke: boolean;
  readonly rounds: number;
  readonly progress: Progress;
  readonly notes: Set<string>;
}

/** A client in a process of its own. */
interface Client {
  readonly variant: VariantId;
  readonly options?: ClientOptions;
  /** Where not the run's own. */
  readonly server?: BenchServer;
  /** Where not the server's own: a proxy in front of it. */
  readonly url?: string;
}

interface Pass extends Axes {
  readonly rounds?: number;
  /** Whether there is a first pass that is not counted. @default true */
  readonly warmUp?: boolean;
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
  readonly #variants = new Set<VariantProcess>();
  #cleanup = new Cleanup();
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
    await this.keep(() => server.close());
    return server;
  }

  /** The URL of the run's server, so far away. */
  async delayed(roundTripMs: number): Promise<string> {
    if (roundTripMs === 0) return this.server.url;
    const proxy = await DelayProxy.open(this.server.url, roundTripMs);
    await this.keep(() => proxy.close());
    return proxy.url;
  }

  async open({ variant, options = {}, server = this.server, url = server.url }: Client): Promise<VariantProcess> {
    const opened = await VariantProcess.open(variant, this.bundle.files.variant, server, options, url);
    this.#variants.add(opened);
    return opened;
  }

  /** To be undone at the end of the experiment. */
  keep(close: () => Promise<void>): Promise<void> {
    return this.#cleanup.add(close);
  }

  /** All cells once in every round, in rotated order. */
  async measure(
    pass: Pass & { run(series: string, place: string): Promise<Measurements> },
    missing: ReadonlySet<string> = new Set(),
  ): Promise<Readings> {
    const [, places] = pass.x;
    const cells = pass.series
      .flatMap((series) => places.map((place) => ({ series, place, id: cellId(series, place) })))
      .filter(({ id }) => !missing.has(id));
    const found = new Map<string, Measurements[]>(cells.map(({ id }) => [id, []]));
    const rounds = this.smoke ? 1 : (pass.rounds ?? this.#rounds);
    for (let round = pass.warmUp === false || this.smoke ? 1 : 0; round <= rounds; round += 1) {
      const which = round === 0 ? 'warm-up' : `round ${round} of ${rounds}`;
      for (const { id, series, place } of rotated(cells, round)) {
        this.#progress.show(this.#title, `${id}, ${which}`);
        const measured = await pass.run(series, place);
        if (round > 0) found.get(id)?.push(measured);
        this.#step();
      }
    }
    return new Readings(pass, found);
  }

  /** The same by clients that are opened for it: cells whose clients are the same share a process. */
  async measureClients({
    client,
    run,
    ...pass
  }: Pass & {
    client(series: string, place: string): Client;
    run(client: VariantProcess, series: string, place: string): Promise<Measurements>;
  }): Promise<Readings> {
    const processes = new Map<string, Promise<VariantProcess | undefined>>();
    const missing = new Set<string>();
    const processOf = (series: string, place: string) => {
      const { variant, options, server = this.server, url = server.url } = client(series, place);
      const key = JSON.stringify([variant, options, url]);
      const opened = processes.get(key) ?? this.#openIfSupported(client(series, place));
      processes.set(key, opened);
      return opened;
    };
    // All at once: starting a process takes longer than a short measurement.
    const cells = pass.series.flatMap((series) => pass.x[1].map((place) => ({ series, place })));
    await Promise.all(
      cells.map(async ({ series, place }) => {
        if ((await processOf(series, place)) === undefined) missing.add(cellId(series, place));
      }),
    );
    const runCell = async (series: string, place: string) => run((await processOf(series, place))!, series, place);
    const readings = await this.measure({ ...pass, run: runCell }, missing);
    await this.closeVariants();
    return readings;
  }

  /** Runs something, and says what CPU the server spent meanwhile, in all and per command. */
  async withServerCpu<T extends { readonly commands?: unknown }>(run: () => Promise<T>, server = this.server) {
    const [measured, serverCpuUs] = await server.cpuDuring(run);
    return { ...measured, serverCpuUs, serverCpuPerCommand: serverCpuUs / Number(measured.commands) };
  }

  /** Ends the variants that were opened, and leaves the rest. */
  async closeVariants(): Promise<void> {
    for (const variant of this.#variants) await variant.close();
    this.#variants.clear();
  }

  /** Ends everything that was opened since the last time. */
  async close(): Promise<void> {
    for (const variant of this.#variants) variant.kill();
    this.#variants.clear();
    await this.#cleanup.run();
    this.#cleanup = new Cleanup();
    this.#progress.show(this.#title, 'done', this.#stepsLeft);
    this.#stepsLeft = 0;
  }

  /** For a variant that was killed on purpose. */
  forget(variant: VariantProcess): void {
    this.#variants.delete(variant);
  }

  /** undefined, and a note, where the package does not have it. */
  async #openIfSupported(client: Client): Promise<VariantProcess | undefined> {
    try {
      return await this.open(client);
    } catch (error) {
      if (!(error instanceof MissingError)) throw error;
      this.notes.add(`${error.message}: not measured.`);
      return undefined;
    }
  }

  #step(): void {
    if (this.#stepsLeft === 0) return;
    this.#stepsLeft -= 1;
    this.#progress.show(this.#title, '', 1);
  }
}
