/** The layer that shows every call to the advisor (`advise.ts`). It is put on when it is asked for, and costs nothing before. */
import { type Tracked, track } from '../advise.js';
import { Entry } from '../connection/entries/entry.js';
import { ownBehind, passesOn } from '../host/probe.js';
import type { AnyFunction, HostCommand } from '../host/types.js';
import { isBlocking } from './blocking.js';
import { FallThrough, routeOf, Sender } from './hot-path.js';
import { argumentsIn, aroundExec } from './light-pipeline.js';
import { changeOverlays } from './overlay.js';

let isOn = false;

export function putOnAdviseLayer(): void {
  if (isOn) return;
  isOn = true;
  const { send } = Sender.prototype;
  Sender.prototype.send = function sendTracked(this: Sender, route, method, given, call) {
    const { counters } = route;
    const sentSoFar = () => (counters === undefined ? 0 : counters.commands + counters.sharedReads);
    const before = sentSoFar();
    const tracked: Tracked = {
      name: this.variant.command.name,
      args: given,
      send: (answered) => send.call(this, route, method, withCallback(given, answered), call),
      outcome: (result) => (result instanceof FallThrough ? 'later' : sentSoFar() === before ? 'from memory' : 'sent'),
    };
    return track(tracked, sendTracked as AnyFunction) as ReturnType<typeof send>;
  };
  changeOverlays((overlay, parent) => {
    const own = Object.hasOwn(overlay, 'sendCommand') ? overlay.sendCommand : undefined;
    const behind = () => own ?? (parent.sendCommand as AnyFunction);
    const sendCommand: AnyFunction = function (this: unknown, ...args) {
      const [command, stream] = args as [HostCommand, unknown];
      const pass = () => behind().apply(this, args);
      const isCall = stream === undefined && routeOf(this) !== undefined && !(command instanceof Entry);
      // What a blocking command waits for is no round trip.
      if (!isCall || isBlocking(command)) return pass();
      const send: Tracked['send'] = (answered) => {
        onReply(command, answered);
        return pass();
      };
      return track({ name: command.name, args: command.args, send }, sendCommand);
    };
    overlay.sendCommand = passesOn(sendCommand, () => ownBehind(behind()));
    for (const name of ['pipeline', 'multi']) {
      const make = overlay[name] as AnyFunction;
      overlay[name] = function (this: unknown, ...args) {
        const made = make.apply(this, args);
        if (routeOf(this) !== undefined) trackExec(made, name);
        return made;
      };
    }
  });
}

/** The call's callback, if it has one, is called when the advisor knows of the reply. */
function withCallback(args: readonly unknown[], answered: (reply: unknown) => void): unknown[] {
  const callback = args.at(-1);
  if (typeof callback !== 'function') return args.slice();
  const told = (...outcome: unknown[]) => {
    answered(outcome[1]);
    return callback(...outcome);
  };
  return [...args.slice(0, -1), told];
}

/** Host: a command's callback is called before what follows its promise. */
function onReply(command: HostCommand, answered: (reply: unknown) => void): void {
  const { resolve } = command;
  if (typeof resolve !== 'function') return;
  command.resolve = (reply) => {
    answered(reply);
    resolve(reply);
  };
}

/** A pipeline or transaction is one round trip. */
function trackExec(made: unknown, name: string): void {
  aroundExec(made, function exec(pipeline, send, args) {
    const values = argumentsIn(pipeline);
    const callback = args[0];
    return track(
      {
        name,
        args: values,
        send: (answered) => send(typeof callback === 'function' ? withCallback(args, answered) : args),
      },
      exec as AnyFunction,
    );
  });
}
