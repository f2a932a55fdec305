import { ArmProcess, type Contender } from './arm-process.js';
import type { Progress } from './progress.js';
import type { CaseResult, ContestantResult } from './results.js';
import { type Case, type ClientRow, type Contestant, SERVER_LIMIT, type ServerKind } from './rows.js';
import { BenchServer } from './server.js';
import { ServerLimit } from './server-limit.js';
import { startTlsServer } from './tls-server.js';
import type { Idle, Probe, Sample } from './workload.js';

/** The pace of rows that are brief, as parts of the others'. */
const BRIEF = { rounds: 3, seconds: 0.5 };

export interface Pace {
  readonly rounds: number;
  /** Of a timed round. */
  readonly seconds: number;
  /** Before an arm's first round in a row: its code has to become hot. */
  readonly warmUpSeconds: number;
  /** Before every later round. */
  readonly rewarmSeconds: number;
  readonly probeSeconds: number;
}

/** An arm that spends more than this share of a core while another is measured makes the run worthless. */
const IDLE_SHARE = 0.05;
const IDLE_SECONDS_JUDGED = 0.2;

/** One arm's part in one case. */
interface Cell {
  readonly case: Case;
  readonly contestant: ClientRow['contestants'][number];
  readonly contender: Contender;
  readonly samples: Sample[];
  probe: Probe;
}

/** Runs rows of the client table: per row, every arm a process of its own, all arms in each round, order rotated. */
export class Runner {
  readonly notes = new Set<string>();
  readonly #server: BenchServer;
  readonly #armFile: string;
  readonly #pace: Pace;
  readonly #progress: Progress;
  readonly #open = new Set<Contender>();
  /** Processes that serve row after row; undefined where each row has its own. */
  readonly #kept: Map<string, Contender> | undefined;
  /** The running row's, where it is not the run's own. */
  #ownServer: BenchServer | undefined;

  /**
   * @param reuse - whether a process may serve more than one row: it starts sooner, but is warm and has counted writes,
   * so its figures mean nothing
   */
  constructor(server: BenchServer, armFile: string, pace: Pace, progress: Progress, reuse: boolean) {
    this.#kept = reuse ? new Map() : undefined;
    this.#server = server;
    this.#armFile = armFile;
    this.#pace = pace;
    this.#progress = progress;
  }

  static steps(row: ClientRow, pace: Pace): number {
    return row.contestants.length * row.cases.length * (paceOf(row, pace).rounds + 1);
  }

  /** @returns undefined where there is no server of the kind that the row needs; a note says so */
  async run(row: ClientRow): Promise<CaseResult[] | undefined> {
    const pace = paceOf(row, this.#pace);
    try {
      const server = row.server === undefined ? this.#server : await this.#start(row.server);
      if (server === undefined) {
        this.notes.add(`${row.title}: the server at hand cannot do it; not measured.`);
        return undefined;
      }
      for (const { workload } of row.cases) await server.seed(workload);
      const cells = await this.#cells(row, server);
      for (let round = 0; round < pace.rounds; round += 1) await this.#round(row, cells, round, pace);
      // Last, because counting writes patches the arm's process.
      for (const cell of cells) {
        this.#progress.show(row.title, `${cell.case.id}, ${cell.contestant}, writes and latencies`);
        cell.probe = await cell.contender.probe(cell.case.workload, pace.probeSeconds);
        this.#progress.show(row.title, `${cell.case.id}, ${cell.contestant}`, 1);
      }
      for (const contender of this.#open) await contender.close();
      this.#open.clear();
      return row.cases.map(({ id }) => ({ id, contestants: resultsOf(cells.filter((cell) => cell.case.id === id)) }));
    } finally {
      await this.abort();
    }
  }

  /** Ends the processes of the running row. */
  async abort(): Promise<void> {
    for (const contender of this.#open) contender.kill();
    this.#open.clear();
    const server = this.#ownServer;
    this.#ownServer = undefined;
    await server?.close();
  }

  /** Ends the processes that served more than one row. */
  async close(): Promise<void> {
    for (const contender of this.#kept?.values() ?? []) await contender.close();
    this.#kept?.clear();
  }

  /** The same at once, for when the run ends early. */
  kill(): void {
    for (const contender of this.#kept?.values() ?? []) contender.kill();
    this.#kept?.clear();
  }

  async #start(kind: ServerKind): Promise<BenchServer | undefined> {
    this.#ownServer = await (kind === 'tls' ? startTlsServer() : BenchServer.startCluster(kind === 'cluster' ? 3 : 1));
    return this.#ownServer;
  }

  async #cells(row: ClientRow, server: BenchServer): Promise<Cell[]> {
    const opened = new Map<ClientRow['contestants'][number], Contender | undefined>();
    // All at once: starting a process takes longer than a short round.
    await Promise.all(
      row.contestants.map(async (contestant) => {
        const kept = row.server === undefined ? this.#kept : undefined;
        const contender = kept?.get(contestant) ?? (await this.#contender(contestant, server));
        if (contender !== undefined && kept !== undefined) kept.set(contestant, contender);
        else if (contender !== undefined) this.#open.add(contender);
        opened.set(contestant, contender);
      }),
    );
    const contenders = row.contestants.flatMap((contestant) => {
      const contender = opened.get(contestant);
      return contender === undefined ? [] : [[contestant, contender] as const];
    });
    return row.cases.flatMap((one) =>
      contenders.map(([contestant, contender]) => ({ case: one, contestant, contender, samples: [], probe: {} })),
    );
  }

  async #contender(contestant: ClientRow['contestants'][number], server: BenchServer): Promise<Contender | undefined> {
    if (contestant !== SERVER_LIMIT) return ArmProcess.open(contestant, this.#armFile, server);
    if (await ServerLimit.available()) return new ServerLimit(server);
    this.notes.add('redis-benchmark is not on PATH: the server limit was not measured.');
    return undefined;
  }

  async #round(row: ClientRow, cells: readonly Cell[], round: number, pace: Pace): Promise<void> {
    const { rewarmSeconds, rounds, seconds, warmUpSeconds } = pace;
    const first = round % cells.length;
    for (const cell of [...cells.slice(first), ...cells.slice(0, first)]) {
      const { contender, contestant } = cell;
      const { id, workload } = cell.case;
      this.#progress.show(row.title, `${id}, ${contestant}, round ${round + 1} of ${rounds}`);
      const idle = await contender.prepare(workload, round === 0 ? warmUpSeconds : rewarmSeconds, round === 0);
      this.#judgeIdle(contestant, idle);
      cell.samples.push(await contender.measure(workload, seconds));
      this.#progress.show(row.title, `${id}, ${contestant}`, 1);
    }
  }

  #judgeIdle(contestant: Contestant, idle: Idle): void {
    const share = idle.cpuSeconds / idle.seconds;
    if (this.#kept !== undefined || idle.seconds < IDLE_SECONDS_JUDGED || share <= IDLE_SHARE) return;
    this.notes.add(`Arm ${contestant} used ${Math.round(share * 100)} % of a core while others were measured.`);
  }
}

function resultsOf(cells: readonly Cell[]): ContestantResult[] {
  return cells.map(({ contestant, samples, probe }) => ({ contestant, samples, probe }));
}

function paceOf(row: ClientRow, pace: Pace): Pace {
  if (row.brief === undefined) return pace;
  return {
    rounds: Math.min(pace.rounds, BRIEF.rounds),
    seconds: pace.seconds * BRIEF.seconds,
    warmUpSeconds: pace.warmUpSeconds * BRIEF.seconds,
    rewarmSeconds: pace.rewarmSeconds * BRIEF.seconds,
    probeSeconds: pace.probeSeconds * BRIEF.seconds,
  };
}
