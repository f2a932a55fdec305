import { Deadlines } from '../connection/deadlines.js';
import type { EntryContext } from '../connection/entry.js';
import { PipelineMethods, PipelinesOf, pipelinePrototype } from '../host/pipeline.js';
import { settlesLate } from '../host/probe.js';
import type { AnyFunction, HostClient, HostCommandClass } from '../host/types.js';
import type { FallThroughReason } from '../stats.js';
import { countFallThrough } from './hot-path.js';
import {
  type LightPipeline,
  type LightPipelineClass,
  lightPipelineClass,
  type PipelineRoute,
} from './light-pipeline.js';

/** The parts from which the pipelines of one class of clients are made. */
interface LightHost {
  readonly methods: PipelineMethods;
  readonly pipelines: LightPipelineClass;
}

/** The same for one client. */
interface ClientPipelines {
  readonly pipelines: PipelinesOf<LightPipelineClass>;
  /** The context of their entries until they are sent. */
  readonly unsent: EntryContext;
}

/**
 * Light pipeline, or the host's? What becomes of a light one: `light-pipeline.ts` records it, `Connection#sendPipeline`
 * sends it, `pipeline-entry.ts` settles it.
 *
 * `pipeline` and `multi` for the overlay of a class of clients: they make light pipelines, or call the host's method if
 * a light pipeline could not take the hot path.
 *
 * @param parent - the client's prototype.
 * @param find - finds the attachment of the object that a method is called on, if it has one.
 */
export function pipelineMethods(
  parent: Record<string, AnyFunction>,
  find: (receiver: unknown) => PipelineRoute | undefined,
): Record<string, AnyFunction> {
  const { pipeline, multi } = parent;
  if (typeof pipeline !== 'function' || typeof multi !== 'function') return {};
  /** Probed when the first pipeline is made; null if the host's pipelines are not as expected. */
  let light: LightHost | null | undefined;
  const clients = new WeakMap<object, ClientPipelines>();

  return {
    pipeline(commands, ...rest) {
      const made = make(this, 'pipeline');
      if (made === undefined) return (parent.pipeline as AnyFunction).call(this, commands, ...rest);
      if (Array.isArray(commands)) made.addBatch(commands);
      return made;
    },
    // Host: `multi(commands, options)` and `multi(options)`.
    multi(...args) {
      const [commands, options] = args[1] === undefined && !Array.isArray(args[0]) ? [undefined, args[0]] : args;
      const isPipelined = !options || (options as { pipeline?: unknown }).pipeline !== false;
      const made = isPipelined ? make(this, 'multi', commands) : undefined;
      if (made === undefined) return (parent.multi as AnyFunction).apply(this, args);
      if (Array.isArray(commands)) made.addBatch(commands);
      return made;
    },
  };

  function make(client: unknown, kind: 'pipeline' | 'multi', commands?: unknown): LightPipeline | undefined {
    const route = find(client);
    if (route === undefined) return undefined;
    const made = holdsExec(commands) ? 'command' : tryMake(client as object, route, kind === 'multi');
    if (typeof made !== 'string') return made;
    countFallThrough(route, kind, made);
    return undefined;
  }

  function tryMake(client: object, route: PipelineRoute, isTransaction: boolean): LightPipeline | FallThroughReason {
    const { commandClass } = route;
    if (commandClass === undefined) return 'cork-only';
    const reason = route.fallThroughReason();
    if (reason !== undefined) return reason;
    if (light === undefined) light = lightHostOf(client);
    if (light === null) return 'cork-only';
    if (!light.methods.areMadeBy(parent.pipeline as AnyFunction, parent.multi as AnyFunction)) return 'patched';
    let ofClient = clients.get(client);
    if (ofClient === undefined) {
      ofClient = { pipelines: new PipelinesOf(client, light.pipelines), unsent: unsentContext(client, commandClass) };
      clients.set(client, ofClient);
    }
    return new ofClient.pipelines.class(client, route, ofClient.unsent, isTransaction);
  }

  function lightHostOf(client: object): LightHost | null {
    const prototype = pipelinePrototype(client, parent.pipeline as AnyFunction);
    if (prototype === undefined) return null;
    const methods = new PipelineMethods(prototype);
    const hostMulti: AnyFunction = function (this: unknown) {
      return (parent.multi as AnyFunction).call(this);
    };
    return { methods, pipelines: lightPipelineClass(methods, hostMulti) };
  }
}

/**
 * The host's `exec`, called past ours, sends entries too (`Pipeline.prototype.exec.call(pipeline)`): they settle then
 * like its own commands, with timers of their own.
 */
function unsentContext(client: object, commandClass: HostCommandClass): EntryContext {
  const sender = client as HostClient;
  const timeouts = new Deadlines(
    () => sender.commandQueue,
    () => 0,
  );
  return { client: sender, commandClass, settlesLate: settlesLate(commandClass), timeouts };
}

/**
 * Host: an EXEC among the commands given to `multi()` is recorded, since the `exec()` that sends does not exist yet.
 */
function holdsExec(commands: unknown): boolean {
  return (
    Array.isArray(commands) &&
    commands.some((command) => Array.isArray(command) && (command[0] === 'exec' || command[0] === 'execBuffer'))
  );
}
