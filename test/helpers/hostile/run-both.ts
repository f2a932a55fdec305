import { type Run, type RunOptions, run, type Scenario } from './scenario.js';

export type Row = { readonly scenario: string; readonly client: string; readonly run: Run };

/** What becomes of a transaction or pipeline that was answered in part when its connection broke: if there was one. */
const CUT = ['AbortError'];

/**
 * Runs a scenario with a plain and a coalesced client at the same time, and where asked for with a corked one, too, and
 * says what is not as it must be.
 */
export async function runBoth(
  scenario: Scenario,
  { corked, ...options }: Omit<RunOptions, 'kind'> & { readonly corked: boolean },
): Promise<{ readonly rows: readonly Row[]; readonly faults: readonly string[] }> {
  const [plain, coalesced, withCork] = await Promise.all([
    run(scenario, { ...options, kind: 'plain' }),
    run(scenario, { ...options, kind: 'coalesced' }),
    corked ? run(scenario, { ...options, kind: 'corked' }) : undefined,
  ]);
  const rows: Row[] = [
    { scenario: scenario.name, client: `${options.host.name}, plain`, run: plain },
    { scenario: scenario.name, client: `${options.host.name}, coalesced`, run: coalesced },
  ];
  if (withCork) rows.push({ scenario: scenario.name, client: `${options.host.name}, corked`, run: withCork });
  const faults = rows.flatMap(({ client, run }) => faultsOf(scenario, run).map((fault) => `${client}: ${fault}`));
  // Where both may leave some open, it is chance which is in flight when; `left-open.test.ts` compares the same case.
  if (!scenario.leavesOpen && plain.open > 0 !== coalesced.open > 0) {
    faults.push(`open at the end: ${plain.open} of the plain client, ${coalesced.open} of the coalesced one`);
  }
  if (!coalesced.stats?.fastCommands) faults.push('expected the fast path to carry commands, got none');
  if (withCork) {
    const { mode, commands: writes = 0, batches = 0 } = withCork.stats ?? {};
    if (mode !== 'cork') faults.push(`expected the cork, got ${mode}`);
    // 100 callers write in the same turns.
    if (batches === 0 || batches >= writes)
      faults.push(`expected the cork to join writes, got ${batches} of ${writes}`);
  }
  return { rows, faults };
}

function faultsOf(scenario: Scenario, run: Run): string[] {
  const faults = run.mismatches.slice(0, 3).map((mismatch) => `wrong reply: ${mismatch}`);
  if (run.mismatches.length > 3) faults.push(`${run.mismatches.length} wrong replies in all`);
  if (run.settledTwice > 0) faults.push(`${run.settledTwice} commands settled twice`);
  if (run.open > 0 && !scenario.leavesOpen) faults.push(`${run.open} commands still open`);
  if (run.replies === 0) faults.push('expected replies, got none');
  if (scenario.reconnects !== run.reconnects > 0) {
    faults.push(`expected ${scenario.reconnects ? 'reconnects' : 'no reconnect'}, got ${run.reconnects}`);
  }
  const possible = [...scenario.errors, ...(scenario.possibleErrors?.kinds ?? []), ...(scenario.reconnects ? CUT : [])];
  const unexpected = [...run.errors.keys()].filter((kind) => !possible.includes(kind));
  const missing = scenario.errors.filter((kind) => !run.errors.has(kind));
  if (unexpected.length > 0) faults.push(`errors that were not expected: ${unexpected.join(', ')}`);
  if (missing.length > 0) faults.push(`expected errors that did not come: ${missing.join(', ')}`);
  return faults;
}
