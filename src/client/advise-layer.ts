/** The layer that shows every call to the advisor (`advise.ts`). It is put on when it is asked for, and costs nothing before. */
import { track } from '../advise.js';
import { Entry } from '../connection/entries/entry.js';
import type { AnyFunction } from '../host/types.js';
import { asCallback } from '../util/promises.js';
import { isBlocking } from './blocking.js';
import { FallThrough, Sender } from './hot-path.js';
import { argumentsIn, aroundExec } from './light-pipeline.js';
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
    const { args, callback } = withoutCallback(given);
    const pass = () => send.call(this, route, method, args, call);
    const sent = track(this.variant.command.name, args, sendTracked as AnyFunction, pass, () => sentSoFar() > before);
    if (!(sent instanceof FallThrough)) asCallback(sent as Promise<unknown>, callback);
    return sent as ReturnType<typeof send>;
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
          const { args, callback } = withoutCallback(given);
          const result = track(name, argumentsIn(_queue), exec as AnyFunction, () => send(args));
          asCallback(result as Promise<unknown>, callback);
          return result;
        });
      },
    });
  });
}

/** Callbacks are called when the advisor knows of the reply. */
function withoutCallback(given: readonly unknown[]): { args: unknown[]; callback: unknown } {
  const callback = given.at(-1);
  return typeof callback === 'function'
    ? { args: given.slice(0, -1), callback }
    : { args: given.slice(), callback: undefined };
}
