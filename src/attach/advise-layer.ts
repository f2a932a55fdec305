/** The layer that shows every call to the advisor (`advise.ts`). It is put on when it is asked for, and costs nothing before. */
import { track } from '../advise.js';
import { isBlocking } from '../calls/blocking-warning.js';
import { argumentsIn, aroundExec } from '../calls/fast-pipeline.js';
import { Sender } from '../calls/sender.js';
import { Entry } from '../connection/entries/entry.js';
import type { AnyFunction } from '../host/types.js';
import { aroundCalls, changeOverlays } from './overlay.js';

let isOn = false;

export function putOnAdviseLayer(): void {
  if (isOn) return;
  isOn = true;
  const { send } = Sender.prototype;
  Sender.prototype.send = function sendTracked(this: Sender, route, method, given, call) {
    const { counters } = route;
    const sentSoFar = () => (counters === undefined ? 0 : counters.commands + counters.sharedReads);
    const before = sentSoFar();
    const pass: Parameters<typeof track>[3] = (answered) =>
      send.call(this, route, method, withCallback(given, answered), call);
    const isSent = () => sentSoFar() > before;
    return track(this.variant.command.name, given, sendTracked as AnyFunction, pass, isSent) as ReturnType<typeof send>;
  };
  changeOverlays((overlay, parent) => {
    aroundCalls(overlay, parent, {
      sendCommand(_route, [command, stream], pass) {
        // What a blocking command waits for is no round trip.
        if (stream !== undefined || command instanceof Entry || isBlocking(command)) return pass();
        return track(command.name, command.args, overlay.sendCommand as AnyFunction, (answered) => {
          const { resolve } = command;
          // Host: its callback is called before what follows its promise.
          command.resolve = (reply) => {
            answered(reply);
            resolve?.(reply);
          };
          return pass();
        });
      },
      made(pipeline, _route, name) {
        aroundExec(pipeline, function exec({ _queue }, send, given) {
          const pass: Parameters<typeof track>[3] = (answered) => send(withCallback(given, answered));
          return track(name, argumentsIn(_queue), exec as AnyFunction, pass);
        });
      },
    });
  });
}

/** The call's callback, if it has one, is called when the advisor knows of the reply. */
function withCallback(given: readonly unknown[], answered: (reply: unknown) => void): unknown[] {
  const callback = given.at(-1);
  if (typeof callback !== 'function') return given.slice();
  const told = (...outcome: unknown[]) => {
    answered(outcome[1]);
    return callback(...outcome);
  };
  return [...given.slice(0, -1), told];
}
