import { ArmProcess, type Contender } from './arm-process.js';
import type { Progress } from './progress.js';
import type { CaseResult, ContestantResult } from './results.js';
import { type Case, type ClientRow, type Contestant, SERVER_LIMIT } from './rows.js';
import type { BenchServer } from './server.js';
import { ServerLimit } from './server-limit.js';
import type { Idle, Probe, Sample } from './workload.js';

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

  constructor(server: BenchServer, armFile: string, pace: Pace, progress: Progress) {
    this.#server = server;
    this.#armFile = armFile;
    this.#pace = pace;
    this.#progress = progress;
  }

  static steps(row: ClientRow, pace: Pace): number {
    return row.contestants.length * row.cases.length * (pace.rounds + 1);
  }

  async run(row: ClientRow): Promise<CaseResult[]> {
    for (const { workload } of row.cases) await this.#server.seed(workload);
    try {
      const cells = await this.#cells(row);
      for (let round = 0; round < this.#pace.rounds; round += 1) await this.#round(row, cells, round);
      // Last, because counting writes patches the arm's process.
      for (const cell of cells) {
        this.#progress.show(row.title, `${cell.case.id}, ${cell.contestant}, writes and latencies`);
        cell.probe = await cell.contender.probe(cell.case.workload, this.#pace.probeSeconds);
        this.#progress.show(row.title, `${cell.case.id}, ${cell.contestant}`, 1);
      }
      for (const contender of this.#open) await contender.close();
      this.#open.clear();
      return row.cases.map(({ id }) => ({ id, contestants: resultsOf(cells.filter((cell) => cell.case.id === id)) }));
    } finally {
      this.abort();
    }
  }

  /** Ends the processes of the running row. */
  abort(): void {
    for (const contender of this.#open) contender.kill();
    this.#open.clear();
  }

  async #cells(row: ClientRow): Promise<Cell[]> {
    const contenders = new Map<ClientRow['contestants'][number], Contender>();
    for (const contestant of row.contestants) {
      const contender = await this.#contender(contestant);
      if (contender === undefined) continue;
      this.#open.add(contender);
      contenders.set(contestant, contender);
    }
    return row.cases.flatMap((one) =>
      [...contenders].map(([contestant, contender]) => ({ case: one, contestant, contender, samples: [], probe: {} })),
    );
  }

  async #contender(contestant: ClientRow['contestants'][number]): Promise<Contender | undefined> {
    if (contestant !== SERVER_LIMIT) return ArmProcess.open(contestant, this.#armFile, this.#server);
    if (await ServerLimit.available()) return new ServerLimit(this.#server);
    this.notes.add('redis-benchmark is not on PATH: the server limit was not measured.');
    return undefined;
  }

  async #round(row: ClientRow, cells: readonly Cell[], round: number): Promise<void> {
    const { rewarmSeconds, rounds, seconds, warmUpSeconds } = this.#pace;
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
    if (idle.seconds < IDLE_SECONDS_JUDGED || share <= IDLE_SHARE) return;
    this.notes.add(`Arm ${contestant} used ${Math.round(share * 100)} % of a core while others were measured.`);
  }
}

function resultsOf(cells: readonly Cell[]): ContestantResult[] {
  return cells.map(({ contestant, samples, probe }) => ({ contestant, samples, probe }));
}
