/**
 * Shows every call to the advisor. Nothing here runs, and no call costs more, before `advise()` or `roundTrips()` is
 * called.
 */
import { aroundCalls, changeOverlays } from '../attach/overlay.js';
import { changeReport } from '../attach/report.js';
import { isBlocking } from '../calls/blocking-warning.js';
import type { CallTarget } from '../core/call-target.js';
import { Entry } from '../core/entry.js';
import { aroundSends } from '../core/sender.js';
import { environment } from '../environment.js';
import { isRejected } from '../host/command-class.js';
import { aroundExec } from '../host/pipeline.js';
import type { AnyFunction } from '../host/types.js';
import { adviseProcess, countRoundTrips, type RoundTrips, track } from './advisor.js';

/** Starts the advisor of the process, if `IOREDIS_COALESCE` asks for it. */
export function advise(): void {
  if (environment !== 'advise' && environment !== 'advise:json') return;
  putOnLayer();
  const advisor = adviseProcess();
  changeReport((clients, shown) =>
    environment === 'advise'
      ? shown([...clients, advisor.report()])
      : [JSON.stringify({ ...advisor.found(), clients })],
  );
}

/**
 * Counts the round trips that `fn` makes on coalesced clients, for tests: those that it issues in its own async
 * context, and in what it calls. Slows all commands of the process down from then on.
 *
 * @param fn - may be async.
 * @returns when it has: how many commands it has issued, how many of them in line for each other, and where.
 * @throws what `fn` throws.
 */
export function roundTrips(fn: () => unknown): Promise<RoundTrips> {
  putOnLayer();
  return countRoundTrips(fn);
}

/** A Cluster's nodes are not in step. */
const orderedBy = ({ client, routing }: CallTarget) => (routing === undefined ? client : undefined);

let isOn = false;

function putOnLayer(): void {
  if (isOn) return;
  isOn = true;
  aroundSends(({ variant }, target, given, send) => {
    const { counters } = target;
    const sentSoFar = () => (counters === undefined ? 0 : counters.commands + counters.sharedReads);
    const before = sentSoFar();
    const { name } = variant.command;
    const commands = [{ name, args: given }];
    return track({ name, commands, client: orderedBy(target), given, send, isSent: () => sentSoFar() > before });
  });
  changeOverlays((overlay, parent) => {
    aroundCalls(overlay, parent, {
      sendCommand(target, [command, stream], pass) {
        const { name, args, resolve, reject } = command;
        if (stream !== undefined || command instanceof Entry || isRejected(command)) return pass();
        // What a blocking command waits for is no round trip, nor is `quit()`; a name may be anything until it is sent.
        if (typeof name !== 'string' || isBlocking(command) || name === 'quit') return pass();
        const settle = (error: Error | null, reply: unknown) => (error === null ? resolve(reply) : reject(error));
        // Host: a callback is called before what follows the promise.
        const send = ([told]: unknown[]) => {
          command.resolve = (reply) => (told as AnyFunction)(null, reply);
          command.reject = told as AnyFunction;
          return pass();
        };
        return track({ name, commands: [{ name, args }], client: orderedBy(target), given: [settle], send });
      },
      made(pipeline, target, name) {
        aroundExec(pipeline, ({ _queue: commands }, send, given) =>
          track({ name, commands, client: orderedBy(target), given, send }),
        );
      },
    });
  });
}
