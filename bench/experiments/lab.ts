import { ArmProcess } from '../arm-process.js';
import { DelayProxy } from '../delay-proxy.js';
import { spread } from '../judge.js';
import type { PanelValue } from '../panel.js';
import type { Progress } from '../progress.js';
import { BenchServer } from '../server.js';
import type { ArmId, ClientOptions, Figures } from '../workload.js';

export interface LabContext {
  readonly server: BenchServer;
  readonly armFile: string;
  readonly smoke: boolean;
  readonly rounds: number;
  readonly progress: Progress;
  readonly notes: Set<string>;
}

/** One measurement that is repeated in each round. */
export interface Cell {
  readonly id: string;
  run(): Promise<Figures>;
}

interface Opened {
  close(): Promise<void>;
}

/** The figures of one cell, over the rounds. */
export class Readings {
  readonly #rounds: readonly Figures[];

  constructor(rounds: readonly Figures[]) {
    this.#rounds = rounds;
  }

  spread(name: string): PanelValue {
    const values = this.#rounds.flatMap((figures) => {
      const value = figures[name];
      return typeof value === 'number' && Number.isFinite(value) ? [value] : [];
    });
    return spread(values) ?? null;
  }

  /** Place by place, of a figure that is a list. */
  spreads(name: string): PanelValue[] {
    const lists = this.#rounds.flatMap((figures) => {
      const value = figures[name];
      return typeof value === 'object' ? [value] : [];
    });
    return (lists[0] ?? []).map((_, place) => spread(lists.flatMap((list) => list[place] ?? [])) ?? null);
  }
}

/** What experiments are made of: servers, delays, clients in processes of their own, and rounds. */
export class Lab {
  readonly smoke: boolean;
  /** Of a timed measurement. */
  readonly seconds: number;
  /** The run's own. */
  readonly server: BenchServer;
  readonly notes: Set<string>;
  readonly #context: LabContext;
  readonly #rounds: number;
  readonly #opened: Opened[] = [];
  readonly #arms = new Set<ArmProcess>();
  #title = '';
  #stepsLeft = 0;

  constructor(context: LabContext) {
    this.#context = context;
    this.server = context.server;
    this.smoke = context.smoke;
    this.notes = context.notes;
    this.seconds = context.smoke ? 0.03 : 0.35;
    this.#rounds = context.smoke ? 1 : Math.min(3, context.rounds);
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

  async startServer(args: readonly string[]): Promise<BenchServer> {
    return this.#keep(await BenchServer.start(args));
  }

  async startCluster(masters: number): Promise<BenchServer> {
    return this.#keep(await BenchServer.startCluster(masters));
  }

  /** The URL of a server that is so far away. */
  async delayed(server: BenchServer, roundTripMs: number): Promise<string> {
    if (roundTripMs === 0) return server.url;
    return this.#keep(await DelayProxy.open(server.url, roundTripMs)).url;
  }

  async arm(arm: ArmId, options: ClientOptions = {}, server = this.server, url = server.url): Promise<ArmProcess> {
    const opened = await ArmProcess.open(arm, this.#context.armFile, server, options, url);
    this.#arms.add(opened);
    return opened;
  }

  keep(close: () => Promise<void>): void {
    this.#opened.push({ close });
  }

  /** Each cell once in every round, in rotated order; a first pass of each is not counted. */
  async measure(
    cells: readonly Cell[],
    options: { rounds?: number; warmUp?: boolean } = {},
  ): Promise<Map<string, Readings>> {
    const rounds = this.smoke ? 1 : (options.rounds ?? this.#rounds);
    const found = new Map<string, Figures[]>(cells.map(({ id }) => [id, []]));
    if (found.size !== cells.length)
      throw new Error(`expected cells with ids of their own, got ${cells.map(({ id }) => id)}`);
    for (let round = options.warmUp === false || this.smoke ? 1 : 0; round <= rounds; round += 1) {
      const first = round % Math.max(1, cells.length);
      for (const cell of [...cells.slice(first), ...cells.slice(0, first)]) {
        this.#context.progress.show(
          this.#title,
          round === 0 ? `${cell.id}, warm-up` : `${cell.id}, round ${round} of ${rounds}`,
        );
        const figures = await cell.run();
        if (round > 0) found.get(cell.id)?.push(figures);
        this.#step();
      }
    }
    return new Map([...found].map(([id, figures]) => [id, new Readings(figures)]));
  }

  /** Runs something, and says what CPU the server spent meanwhile, in all and per command. */
  async withServerCpu(server: BenchServer, run: () => Promise<Figures>): Promise<Figures> {
    const before = await server.cpuUs();
    const figures = await run();
    const serverCpuUs = (await server.cpuUs()) - before;
    const { commands } = figures;
    return {
      ...figures,
      serverCpuUs,
      ...(typeof commands === 'number' ? { serverCpuPerCommand: serverCpuUs / commands } : {}),
    };
  }

  /** Ends the arms that were opened, and leaves the rest. */
  async closeArms(): Promise<void> {
    for (const arm of this.#arms) {
      this.#arms.delete(arm);
      await arm.close();
    }
  }

  /** Ends everything that was opened since the last time. */
  async close(): Promise<void> {
    for (const arm of this.#arms) arm.kill();
    this.#arms.clear();
    for (const opened of this.#opened.splice(0).reverse()) await opened.close();
    this.#context.progress.show(this.#title, 'done', this.#stepsLeft);
    this.#stepsLeft = 0;
  }

  /** For an arm that was killed on purpose. */
  forget(arm: ArmProcess): void {
    this.#arms.delete(arm);
  }

  #keep<T extends Opened>(opened: T): T {
    this.#opened.push(opened);
    return opened;
  }

  #step(): void {
    if (this.#stepsLeft === 0) return;
    this.#stepsLeft -= 1;
    this.#context.progress.show(this.#title, '', 1);
  }
}
