import { FAST_COMMANDS, type FastCommand } from '../commands/fast-commands.js';
import { CommandSender } from '../core/sender.js';
import { findsKeysInAnyCase } from '../host/command-class.js';
import type { HostCommandClass } from '../host/types.js';
import { isAscii } from '../resp/encoder.js';
import { warnIfBlocking } from './blocking-warning.js';
import type { MethodSpec } from './method.js';

/** The methods whose first argument is the name of the command. */
const CALLS = [
  ['call', 'utf8'],
  ['callBuffer', null],
  ['send_command', 'utf8'],
] as const;

/** The most names kept, since a name can be written in many ways, such as `call('gEt')`. */
const MAX_NAMES = 1_000;

const commands = new Map(FAST_COMMANDS.map((command) => [command.name, command]));

/** `call('get', key)` and the like, which are fast if the command is. */
export function fastCalls(parent: MethodSpec['parent']): MethodSpec[] {
  return CALLS.map(([methodName, encoding]) => {
    const senders = new Map<string, CommandSender>();
    return {
      methodName,
      parent,
      leading: 1,
      senderFor({ commandClass }, name) {
        if (commandClass === undefined || typeof name !== 'string') return undefined;
        const kept = senders.get(name);
        if (kept !== undefined) return kept;
        const command = fastCommandNamed(name, commandClass);
        if (command === undefined) return undefined;
        const sender = new CommandSender(command, encoding);
        if (senders.size < MAX_NAMES) senders.set(name, sender);
        return sender;
      },
      onFallback(target, [name]) {
        if (typeof name === 'string') warnIfBlocking(target, name.toLowerCase());
      },
    };
  });
}

/**
 * The fast command of this name, in upper or lower case. Host: the name is sent as given, and transformers and the flag
 * `readonly` are looked up under the name as given (`Cluster#sendCommand`).
 */
export function fastCommandNamed(name: string, commandClass: HostCommandClass): FastCommand | undefined {
  const exact = commands.get(name);
  if (exact !== undefined) return exact;
  // Some other characters become ASCII in lower case, such as the Kelvin sign.
  const command = isAscii(name) ? commands.get(name.toLowerCase()) : undefined;
  if (command === undefined) return undefined;
  return { ...command, name, readOnly: false, keys: findsKeysInAnyCase(commandClass) ? command.keys : 'none' };
}
