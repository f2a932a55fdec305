/** The advisor's findings as lines of text. */
import type { Site } from './sites.js';
import type { Loop, Pair } from './waits.js';

const MAX_LINES = 20;

/**
 * The waits that can be avoided, then those that need more traffic or `cache.prefetch`, and with `isVerbose` those that
 * must stay.
 *
 * @param sorted - the most expensive first.
 * @param commands - the number of commands seen, as text.
 */
export function linesOf(sorted: readonly Pair[], commands: string, isVerbose: boolean): string[] {
  const loops = [...new Set(sorted.flatMap(({ isLoop, second: { loop } }) => (isLoop && loop ? [loop] : [])))];
  const safe = loops.filter(({ advice }) => advice === 'together');
  const isWithin = ({ body }: Loop, other: Loop) =>
    other.body.size > body.size && [...body].every((place) => other.body.has(place));
  // A loop is one finding, which includes all waits within it.
  const shown = sorted.filter((pair) => {
    const { loop } = pair.second;
    if (pair.isLoop && loop)
      return [...loop.ends].find(({ isLoop }) => isLoop) === pair && !safe.some((other) => isWithin(loop, other));
    return !safe.some(({ body }) => body.has(pair.first) && body.has(pair.second));
  });
  const saving = shown.filter(({ advice }) => advice === 'together');
  const others = shown.filter(({ advice, prefetchMs }) => isVerbose || advice === 'unclear' || prefetchMs > 0);
  const all = [...saving, ...others.filter((pair) => !saving.includes(pair))].map(lineOf);
  const lines = all.slice(0, MAX_LINES);
  if (all.length > MAX_LINES) lines.push(`… and ${counted(all.length - MAX_LINES)} more`);
  const who = ['no place waits', '1 place waits'][saving.length] ?? `${counted(saving.length)} places wait`;
  return [`${who} for one round trip after another without need (${commands} seen)`, ...lines];
}

function lineOf(pair: Pair): string {
  const { prefetchMs } = pair;
  const text = pair.isLoop ? loopText(pair) : pairText(pair);
  const isLeft = !['together', 'unclear'].includes(pair.advice);
  if (prefetchMs > 0) return `${text}; cache.prefetch would save ${prefetchMs.toFixed(1)} ms`;
  return text + (isLeft ? ': leave it' : '');
}

function pairText(pair: Pair): string {
  const { first, second, waits, answered, advice } = pair.wait;
  const seen = timesOf(waits);
  const [firstMs, secondMs] = [pair.firstMs / waits, pair.secondMs / waits];
  const share = Math.floor((100 * (pair.followed.something + pair.followed.nothing)) / answered);
  const why = {
    together: `independent, ${seen}; together they would save ${Math.min(firstMs, secondMs).toFixed(1)} ms of ${(firstMs + secondMs).toFixed(1)}`,
    argument: "an argument holds the first's reply",
    if: `follows in ${share} % of ${counted(answered)} times: an if stands between`,
    leave: `${seen}; the first may decide on the second`,
    unclear: `${seen}: needs more traffic`,
  };
  return `${named(first)} → ${named(second)}  ${first.command}, then ${second.command}: ${why[advice]}`;
}

function loopText({ second, advice }: Pair): string {
  const { body, items, now, after, pairs, runs } = second.loop as Loop;
  const reads = [...body].map(({ site }) => site);
  const commands = reads.map(({ command }) => command);
  const meanMs = pairs.reduce((ms, pair) => ms + pair.secondMs, 0) / pairs.reduce((sum, { waits }) => sum + waits, 0);
  const ofItems = reads.length > 1 ? `${reads.length} places for each of ${Math.round(items)} items, ` : '';
  const how = commands.join() === 'get' ? 'Promise.all, mget' : 'Promise.all';
  const why = {
    together: `${ofItems}${now} round trips of ${meanMs.toFixed(1)} ms each; issued together (${how}): ${after}`,
    argument: 'an argument holds the reply before it',
    if: 'a reply ends it',
    leave: 'a reply may decide on the next',
    unclear: 'needs more traffic',
  };
  const places = reads.map((site, index) =>
    site.functionName === reads[index - 1]?.functionName ? site.place : named(site),
  );
  return `${places.join(', ')}  ${commands.join(', ')} ×${Math.round(items)} in a row, ${timesOf(runs)}: ${why[advice]}`;
}

const timesOf = (times: number) => `${counted(times)} ${times === 1 ? 'time' : 'times'}`;

export function counted(value: number): string {
  return value.toLocaleString('en');
}

function named({ place, functionName }: Site): string {
  return functionName === '' ? place : `${place} ${functionName}`;
}
