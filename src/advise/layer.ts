/**
 * Passes every call to the advisor. It costs nothing until `advise()` or `roundTrips()` is called.
 */
import { aroundCalls, changeOverlays } from '../attach/overlay.js';
import { changeReport, onReported, type Reportable } from '../attach/report.js';
import { isBlocking } from '../calls/blocking-warning.js';
import type { CallTarget } from '../core/call-target.js';
import { Entry } from '../core/entry.js';
import { type AroundSends, aroundSends } from '../core/sender.js';
import { reports, verbose } from '../environment.js';
import { isHostCluster } from '../host/cluster.js';
import { isRejected } from '../host/command-class.js';
import { aroundExec } from '../host/pipeline.js';
import type { AnyFunction, HostCommand } from '../host/types.js';
import { adviseProcess, countRoundTrips, type RoundTrips, startWatching, track } from './advisor.js';

/** Starts the advisor of the process, if `IOREDIS_COALESCE` requests it. */
export function advise(): void {
  if (reports === undefined || reports === 'stats') return;
  const advisor = adviseProcess();
  installLayer();
  changeReport((clients, shown) =>
    reports === 'advise'
      ? shown([...clients, advisor.report(verbose)])
      : [JSON.stringify({ ...advisor.found(), clients })],
  );
  onReported(watchCorked);
}

/**
 * Counts the round trips that `fn` makes on coalesced clients, for tests: those issued in its async context, also by
 * functions that it calls. Slows down all commands of the process meanwhile.
 *
 * @param fn - may be async.
 * @returns when `fn` ends: how many commands it issued, how many of them in sequence, and where they waited.
 * @throws what `fn` throws.
 */
export function roundTrips(fn: () => unknown): Promise<RoundTrips> {
  installLayer();
  return countRoundTrips(fn);
}

/** The client that keeps the order of its commands; undefined for a Cluster, whose nodes do not. */
const orderedBy = ({ client, routing }: CallTarget) => (routing === undefined ? client : undefined);

let isInstalled = false;
/** False while the advisor pauses. */
let isWatching = false;

function installLayer(): void {
  if (isInstalled) return;
  isInstalled = true;
  changeOverlays((overlay, parent) => {
    aroundCalls(overlay, parent, {
      sendCommand: (target, [command, stream], pass) => watchCommand(orderedBy(target), command, stream, pass),
      made: (pipeline, target, name) => watchPipeline(orderedBy(target), pipeline, name),
    });
  });
  startWatching((isWatched) => {
    isWatching = isWatched;
    aroundSends(isWatching ? watchSend : undefined);
  });
}

const watchSend: AroundSends = ({ variant }, target, given, send) => {
  const { counters } = target;
  const sentSoFar = () => (counters === undefined ? 0 : counters.commands + counters.sharedReads);
  const before = sentSoFar();
  const { name } = variant.command;
  const commands = [{ name, args: given }];
  return track({ name, commands, client: orderedBy(target), given, send, isSent: () => sentSoFar() > before });
};

function watchCommand(client: object | undefined, command: HostCommand, stream: unknown, pass: () => unknown): unknown {
  const { name, args, resolve, reject } = command;
  if (!isWatching || stream !== undefined || command instanceof Entry || isRejected(command)) return pass();
  // A blocking command waits for others, and `quit()` ends the client. A name may be any value until it is sent.
  if (typeof name !== 'string' || isBlocking(command) || name === 'quit') return pass();
  const settle = (error: Error | null, reply: unknown) => (error === null ? resolve(reply) : reject(error));
  // Host: it calls a callback before the promise's handlers.
  const send = ([onReply]: unknown[]) => {
    command.resolve = (reply) => (onReply as AnyFunction)(null, reply);
    command.reject = onReply as AnyFunction;
    return pass();
  };
  return track({ name, commands: [{ name, args }], client, given: [settle], send });
}

function watchPipeline(client: object | undefined, pipeline: unknown, name: 'pipeline' | 'multi'): void {
  aroundExec(pipeline, ({ _queue: commands }, send, given) =>
    isWatching ? track({ name, commands, client, given, send }) : send(given),
  );
}

/** Wraps public methods of a corked client, as own properties of the client. */
function watchCorked(attachment: Reportable): void {
  const { client, reason } = attachment;
  if (reason === undefined) return;
  const ordered = isHostCluster(client) ? undefined : client;
  const restore: (() => void)[] = [];
  attachment.onDetached = () => {
    for (const each of restore) each();
  };
  const own = (name: string, around: (result: () => unknown, args: unknown[]) => unknown) => {
    const method = (client as unknown as Record<string, AnyFunction | undefined>)[name];
    if (typeof method !== 'function') return;
    const before = Object.getOwnPropertyDescriptor(client, name);
    const value = function (this: unknown, ...args: unknown[]) {
      const call = () => method.apply(this, args);
      return attachment.enabled ? around(call, args) : call();
    };
    Reflect.defineProperty(client, name, { value, writable: true, configurable: true });
    restore.push(() => {
      if (Object.getOwnPropertyDescriptor(client, name)?.value !== value) return;
      if (before?.value === undefined) Reflect.deleteProperty(client, name);
      else Reflect.defineProperty(client, name, before);
    });
  };
  own('sendCommand', (pass, [command, stream]) => watchCommand(ordered, command as HostCommand, stream, pass));
  for (const name of ['pipeline', 'multi'] as const) {
    own(name, (make) => {
      const made = make();
      if ('_queue' in Object(made)) watchPipeline(ordered, made, name);
      return made;
    });
  }
}
