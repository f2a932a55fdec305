import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { bundled } from '../helpers/bundled.js';
import { HOSTS } from '../helpers/hosts.js';
import { ATTACKS, type Attack, startAttacker } from '../helpers/lifecycle/attacks.js';
import type { Fate, Orders } from '../helpers/lifecycle/victim.js';
import { share } from '../helpers/share.js';

const run = promisify(execFile);
let victim: string;
beforeAll(async () => {
  victim = await bundled(fileURLToPath(new URL('../helpers/lifecycle/victim.ts', import.meta.url)));
});

/** Heap of the attacked process; buffers come on top. */
const HEAP_MB = 128;
/** By how much peaks of the same client differ from run to run: they are sampled, and packets are cut anyhow. */
const NOISE_MB = 8;
/** What may be held before a client is cut off: redis-parser copies a line anew with each packet, up to our limit. */
const CUT_OFF_MB = 24;

type Fates = Readonly<Record<string, Fate>>;

async function attackAll(host: Orders['host'], kind: Orders['kind'], attacks: readonly string[]): Promise<Fates> {
  const urls: Record<string, string> = {};
  for (const name of attacks) urls[name] = await startAttacker(ATTACKS[name] as Attack);
  const orders: Orders = { host, kind, urls };
  const flags = [`--max-old-space-size=${HEAP_MB}`, '--expose-gc'];
  const { stdout } = await run(process.execPath, [...flags, victim, JSON.stringify(orders)]);
  return JSON.parse(stdout) as Fates;
}

/**
 * Plain clients have no limits of their own on what a server sends: they set memory aside for what it announces, and
 * keep what comes. A coalesced one ends the connection, and where it does not, it must come to the same end on no more
 * memory.
 */
describe.each(share(HOSTS, HOSTS.length))('$name and a malicious server', (host) => {
  /** Of all attacks, by the first test. */
  let fates: Promise<[plain: Fates, coalesced: Fates]> | undefined;

  const title = 'disconnects, or ends as a plain client does: %s';
  it.each(Object.entries(ATTACKS))(title, { timeout: 120_000 }, async (attack, { cutOff }) => {
    const within = Object.keys(ATTACKS).filter((name) => !ATTACKS[name]?.cutOff);
    fates ??= Promise.all([
      attackAll(host.name, 'plain', within),
      attackAll(host.name, 'coalesced', Object.keys(ATTACKS)),
    ]);
    const [plain, coalesced] = await fates;
    const { peak, ...actual } = coalesced[attack] as Fate;
    if (cutOff) {
      expect(peak, 'MiB at the most').toBeLessThanOrEqual(CUT_OFF_MB);
      expect(Object.keys(actual.errors)).toContainEqual(expect.stringMatching(/^Error: the server announced /));
      expect(actual.uncaught).toEqual([]);
      for (const reply of actual.replies) expect(reply).toContain('Error: Connection is closed.');
    } else {
      const { peak: plainPeak, ...expected } = plain[attack] as Fate;
      expect(peak, 'MiB at the most').toBeLessThanOrEqual(plainPeak + NOISE_MB);
      expect(actual).toEqual(expected);
    }
  });
});
