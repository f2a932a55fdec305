import { CODES } from 'ioredis-coalesce/coalesce';
import { expect, it, onTestFinished } from 'vitest';
import { SlowPathWarning } from '../../src/calls/call-host.js';
import { type FallbackReason, Stats } from '../../src/stats.js';
import { sleep } from '../helpers/hosts.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings(CODES.NOT_FAST);

/** A watch whose clock the test owns, and a client. */
function scene() {
  const state = { nowMs: 5_000 };
  const watch = new SlowPathWarning(() => state.nowMs);
  const stats = new Stats();
  return {
    stats,
    /** `perSecond` commands of the client fall back in each of `seconds` seconds. */
    load(reason: FallbackReason, seconds: number, perSecond = 2_048): void {
      for (let second = 0; second < seconds; second += 1) {
        for (let command = 0; command < perSecond; command += 1) {
          watch.fellBack(stats, reason);
        }
        state.nowMs += 1_000;
      }
    },
  };
}

/** The texts of the warnings that `action` brings about. */
async function warningsOf(action: () => void): Promise<string[]> {
  const texts: string[] = [];
  const listener = (warning: Error & { code?: string }) => {
    if (warning.code === CODES.NOT_FAST) texts.push(warning.message);
  };
  process.on('warning', listener);
  onTestFinished(() => void process.off('warning', listener));
  action();
  await sleep(5);
  return texts;
}

it('is silent while a command is fast now and then, under little load, and for what no setting cures', async () => {
  const texts = await warningsOf(() => {
    const fast = scene();
    for (let half = 0; half < 10; half += 1) {
      fast.load('traced', 30);
      fast.stats.fastCommands += 1;
    }
    scene().load('traced', 59);
    scene().load('traced', 600, 1);
    scene().load('arguments', 600);
  });
  expect(texts).toEqual([]);
});

it.each([
  ['traced', /Sentry even with tracesSampleRate: 0, which leaves .* leave its integration of Redis out$/],
  ['patched', /leave its instrumentation of ioredis out$/],
  ['options', /enableAutoPipelining or showFriendlyErrorStack is set; turn it off$/],
] as const)('warns once after a minute without a fast command: %s', async (reason, text) => {
  const texts = await warningsOf(() => {
    const { load } = scene();
    load(reason, 180);
  });
  expect(texts).toEqual([expect.stringMatching(text)]);
});
