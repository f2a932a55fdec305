import { type BenchServer, openServer } from './bench-server.js';
import { bundlePrograms } from './bundle.js';
import type { Cleanup } from './cleanup.js';
import type { Asked } from './pace.js';
import { Progress } from './progress.js';
import { MissingError } from './tool.js';
import type { Runnable } from './variant-process.js';

interface RigOptions {
  readonly asked: Asked;
  /** For the progress bar. */
  readonly samples: number;
  /** The binary of Node that runs the clients. @default this one */
  readonly nodePath?: string;
  /** @default the one at `REDIS_URL`, else one that is started */
  readonly server?: BenchServer;
}

/** What everything that a run measures shares, and the owner of the processes that are measured. */
export async function openRig(cleanup: Cleanup, { asked, samples, nodePath, server: given }: RigOptions) {
  const bundle = await bundlePrograms(nodePath);
  await cleanup.add(() => bundle.remove());
  const log = (line: string) => process.stderr.write(`${line}\n`);
  const server = given ?? (await openServer(process.env.REDIS_URL, { log }));
  await cleanup.add(() => server.close());
  const progress = new Progress(samples);
  await cleanup.add(async () => progress.stop());
  const notes = new Set<string>();
  const processes = new Set<Runnable>();
  const kill = () => {
    for (const one of processes) one.kill();
    processes.clear();
  };
  await cleanup.add(async () => kill());
  return {
    ...{ asked, cleanup, bundle, server, progress },
    /** What was left out, and what may have disturbed the run. */
    notes,
    /** undefined, and a note, where this machine or the package does not have it */
    async open<T extends Runnable>(opening: Promise<T>): Promise<T | undefined> {
      try {
        const opened = await opening;
        processes.add(opened);
        return opened;
      } catch (error) {
        if (!(error instanceof MissingError)) throw error;
        notes.add(`${error.message}: not measured.`);
        return undefined;
      }
    },
    /** All of them, for when something went wrong. */
    kill,
  };
}

export type Rig = Awaited<ReturnType<typeof openRig>>;
