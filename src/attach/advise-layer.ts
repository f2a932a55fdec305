/** The layer that shows every call to the advisor (`advise.ts`). It is put on when it is asked for, and costs nothing before. */
import { track } from '../advise.js';
import { isBlocking } from '../calls/blocking-warning.js';
import { aroundExec } from '../calls/fast-pipeline.js';
import { Sender } from '../calls/sender.js';
import { Entry } from '../connection/entries/entry.js';
import { isRejected } from '../host/command-class.js';
import type { AnyFunction } from '../host/types.js';
import { aroundCalls, changeOverlays } from './overlay.js';

let isOn = false;

export function putOnAdviseLayer(): void {
  if (isOn) return;
  isOn = true;
  const { send } = Sender.prototype;
  Sender.prototype.send = function sendTracked(this: Sender, target, method, given, call) {
    const { counters } = target;
    const sentSoFar = () => (counters === undefined ? 0 : counters.commands + counters.sharedReads);
    const before = sentSoFar();
    const pass = (args: unknown[]) => send.call(this, target, method, args, call);
    return track(this.variant.command.name, given, given, pass, () => sentSoFar() > before) as ReturnType<typeof send>;
  };
  changeOverlays((overlay, parent) => {
    aroundCalls(overlay, parent, {
      sendCommand(_target, [command, stream], pass) {
        const { name, args, resolve, reject } = command;
        if (stream !== undefined || command instanceof Entry || isRejected(command)) return pass();
        // What a blocking command waits for is no round trip, nor is `quit()`; a name may be anything until it is sent.
        if (typeof name !== 'string' || isBlocking(command) || name === 'quit') return pass();
        const settle = (error: Error | null, reply: unknown) => (error === null ? resolve(reply) : reject(error));
        // Host: a callback is called before what follows the promise.
        return track(name, args, [settle], ([told]) => {
          command.resolve = (reply) => (told as AnyFunction)(null, reply);
          command.reject = told as AnyFunction;
          return pass();
        });
      },
      made(pipeline, _target, name) {
        aroundExec(pipeline, ({ _queue }, send, given) => {
          const args = _queue.flatMap((command) => command.args);
          return track(name, args, given, send);
        });
      },
    });
  });
}
