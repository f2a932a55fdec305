import { HOT_COMMANDS, type HotCommand } from '../commands/hot-commands.js';
import { findsKeysInAnyCase } from '../host/command-class.js';
import type { AnyFunction, HostCommandClass } from '../host/types.js';
import { isAscii } from '../resp/encoder.js';
import { type BlockingRoute, sendElsewhere } from './blocking.js';
import { CommandSender, callHost, countFallThrough, FallThrough, type HotRoute, withForm } from './hot-path.js';

/** The methods that take the name of their command as an argument. */
const CALLS = [
  ['call', 'utf8'],
  ['callBuffer', null],
  ['send_command', 'utf8'],
] as const;

/** The largest number of names kept; a name can be written in many ways, such as `call('gEt')`. */
const KEPT_NAMES = 1_000;

const commands = new Map(HOT_COMMANDS.map((command) => [command.name, command]));

type Find = (receiver: unknown) => (HotRoute & BlockingRoute) | undefined;

/** `call('get', key)` and the like: hot if the command is. */
export function hotCalls(parent: object, find: Find): Record<string, AnyFunction> {
  const hostMethods = parent as Record<string, AnyFunction>;
  const made = CALLS.filter(([methodName]) => typeof hostMethods[methodName] === 'function').map(
    ([methodName, encoding]) => [methodName, hotCall(methodName, encoding, hostMethods, find)] as const,
  );
  return Object.fromEntries(made);
}

function hotCall(
  methodName: string,
  encoding: 'utf8' | null,
  parent: Record<string, AnyFunction>,
  find: Find,
): AnyFunction {
  const senders = new Map<string, CommandSender>();

  return withForm(
    function call(name, ...args) {
      const route = find(this);
      const method = parent[methodName] as AnyFunction;
      const commandClass = route?.commandClass ?? route?.splitter?.commandClass;
      const sender = commandClass && senderFor(name, commandClass);
      if (route === undefined || sender === undefined) {
        const all = [name, ...args];
        const isBlocking = route !== undefined && typeof name === 'string';
        const sentElsewhere = isBlocking ? sendElsewhere(route, name.toLowerCase(), method, all, 1) : undefined;
        return sentElsewhere === undefined ? callHost(method, this, all, 1) : sentElsewhere[0];
      }
      const sent = sender.send(route, method, args);
      if (!(sent instanceof FallThrough)) return sent;
      countFallThrough(route, methodName, sent.reason);
      return sent.callHost(method, this, [name, ...args], 1);
    },
    {
      methodName,
      leading: 1,
      find,
      method: () => parent[methodName] as AnyFunction,
      senderFor: ({ commandClass }, [name]) => commandClass && senderFor(name, commandClass),
    },
  );

  function senderFor(name: unknown, commandClass: HostCommandClass): CommandSender | undefined {
    if (typeof name !== 'string') return undefined;
    const kept = senders.get(name);
    if (kept !== undefined) return kept;
    const command = hotCommandNamed(name, commandClass);
    if (command === undefined) return undefined;
    const sender = new CommandSender({ command, encoding });
    if (senders.size < KEPT_NAMES) senders.set(name, sender);
    return sender;
  }
}

/**
 * The hot command of this name, in upper or lower case. Host: the name is sent as given, and transformers and the flag
 * `readonly` are looked up under the name as given (`Cluster#sendCommand`).
 */
export function hotCommandNamed(name: string, commandClass: HostCommandClass): HotCommand | undefined {
  const exact = commands.get(name);
  if (exact !== undefined) return exact;
  // Some characters that are not ASCII have an ASCII one as their lower case, such as the Kelvin sign.
  const command = isAscii(name) ? commands.get(name.toLowerCase()) : undefined;
  if (command === undefined) return undefined;
  return { ...command, name, readOnly: false, keys: findsKeysInAnyCase(commandClass) ? command.keys : 'none' };
}
