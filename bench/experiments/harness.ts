import { type BenchServer, startServer } from '../suite/bench-server.js';
import { Cleanup } from '../suite/cleanup.js';
import { openDelayProxy } from '../suite/delay-proxy.js';
import type { Rig } from '../suite/rig.js';
import { rotated } from '../suite/runner.js';
import { VariantProcess } from '../suite/variant-process.js';
import type { VariantId } from '../variants/clients.js';
import type { ClientOptions, Measurements } from '../variants/protocol.js';
import { type Axes, cellsOf, type Readings, readingsOf } from './readings.js';

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

export type Harness = Awaited<ReturnType<typeof openHarness>>;

/** What experiments are made of: servers, delays, clients in processes of their own, and rounds. */
export async function openHarness(rig: Rig, { title, steps }: { title: string; steps: number }) {
  const { bundle, cleanup: ofRun, notes, pace, progress, server: own, smoke } = rig;
  const cleanup = new Cleanup();
  await ofRun.add(() => cleanup.run());
  let stepsLeft = steps;

  /** To be undone at the end of the experiment. */
  const keep = (close: () => Promise<void>) => cleanup.add(close);

  const openProcess = ({ variant, options = {}, server = own, url = server.url }: Client) =>
    VariantProcess.open(variant, bundle, server, options, url);

  /** All cells once in every round, in rotated order. */
  const measure = async (
    { run, ...pass }: Pass & { run(series: string, place: string): Promise<Measurements> },
    missing: ReadonlySet<string> = new Set(),
  ): Promise<Readings> => {
    const cells = cellsOf(pass).filter(({ id }) => !missing.has(id));
    const found = new Map<string, Measurements[]>(cells.map(({ id }) => [id, []]));
    const rounds = smoke ? 1 : (pass.rounds ?? Math.min(3, pace.rounds));
    for (let round = pass.warmUp === false || smoke ? 1 : 0; round <= rounds; round += 1) {
      const which = round === 0 ? 'warm-up' : `round ${round} of ${rounds}`;
      for (const { id, series, place } of rotated(cells, round)) {
        progress.show(title, `${id}, ${which}`);
        const measured = await run(series, place);
        if (round > 0) found.get(id)?.push(measured);
        progress.show(title, '', stepsLeft > 0 ? 1 : 0);
        stepsLeft = Math.max(0, stepsLeft - 1);
      }
    }
    return readingsOf(pass, found);
  };

  return {
    ...{ bundle, keep, measure, notes, server: own, smoke },
    /** Of a timed measurement. */
    seconds: smoke ? 0.03 : 0.35,
    /** Fewer of something where it only has to run. */
    some: <T>(values: readonly T[]): readonly T[] =>
      smoke && values.length > 2 ? [values[0]!, values.at(-1)!] : values,
    /** A number that is smaller where it only has to run. */
    count: (full: number, small: number) => (smoke ? small : full),

    async startServer(args?: readonly string[]): Promise<BenchServer> {
      const server = await startServer(args);
      await keep(() => server.close());
      return server;
    },

    /** The URLs of the run's server behind each of these round trips, in milliseconds. */
    async delayed(roundTrips: readonly string[]): Promise<ReadonlyMap<string, string>> {
      const urls = new Map<string, string>();
      for (const roundTrip of roundTrips) {
        const proxy = roundTrip === '0' ? undefined : await openDelayProxy(own.url, Number(roundTrip));
        if (proxy !== undefined) await keep(() => proxy.close());
        urls.set(roundTrip, proxy?.url ?? own.url);
      }
      return urls;
    },

    openProcess,
    /** One that is ended with the others. */
    open: async (client: Client) => (await rig.open(openProcess(client)))!,

    /**
     * Each cell by a client that is opened for it, of the variant that gives the series its name if nothing else is
     * said: cells whose clients are the same share a process.
     */
    async measureClients({
      client = (series) => ({ variant: series as VariantId }),
      run,
      ...pass
    }: Pass & {
      client?(series: string, place: string): Client;
      run(client: VariantProcess, series: string, place: string): Promise<Measurements>;
    }): Promise<Readings> {
      const processes = new Map<string, Promise<VariantProcess | undefined>>();
      const missing = new Set<string>();
      const processOf = (series: string, place: string) => {
        const wanted = client(series, place);
        const { variant, options, server = own, url = server.url } = wanted;
        const key = JSON.stringify([variant, options, url]);
        const opened = processes.get(key) ?? rig.open(openProcess(wanted));
        processes.set(key, opened);
        return opened;
      };
      // All at once: starting a process takes longer than a short measurement.
      await Promise.all(
        cellsOf(pass).map(async ({ id, series, place }) => {
          if ((await processOf(series, place)) === undefined) missing.add(id);
        }),
      );
      const runCell = async (series: string, place: string) => run((await processOf(series, place))!, series, place);
      const readings = await measure({ ...pass, run: runCell }, missing);
      await rig.close();
      return readings;
    },

    /** Runs something, and says what CPU the server spent meanwhile, in all and per command. */
    async withServerCpu<T extends { readonly commands?: unknown }>(run: () => Promise<T>, server = own) {
      const [measured, serverCpuUs] = await server.cpuDuring(run);
      return { ...measured, serverCpuUs, serverCpuPerCommand: serverCpuUs / Number(measured.commands) };
    },

    /** Ends the clients that were opened, and leaves the rest. */
    closeVariants: () => rig.close(),

    /** Ends everything that was opened for the experiment. */
    async close(): Promise<void> {
      await rig.close();
      await cleanup.run();
      progress.show(title, 'done', stepsLeft);
    },
  };
}
