type NodeCallback = (error: unknown, value?: unknown) => void;

/**
 * Calls `callback`, if it is a function, when the promise settles. Host: like `standard-as-callback` in
 * `Command#initPromise` and `Script#execute`. An error that the callback throws surfaces in a timer of the current
 * global, as in the host: an exception to `clock.ts`.
 */
export function asCallback(promise: Promise<unknown>, callback: unknown): void {
  if (typeof callback !== 'function') return;
  const settled = callback as NodeCallback;
  promise.then(
    (value) => call(() => (value === undefined ? settled(null) : settled(null, value))),
    (error) => call(() => settled(error || Object.assign(new Error(`${error}`), { cause: error }))),
  );
}

/** The promise of a call that is not sent. The callback gets the error, too. */
export function rejectedWith(error: unknown, callback: unknown): Promise<never> {
  const promise = Promise.reject(error);
  asCallback(promise, callback);
  return promise;
}

function call(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    setTimeout(() => {
      throw error;
    }, 0);
  }
}

/** The settlers of the last promise made with `keepSettlers`. Read them before the next one is made. */
export let lastResolve: (value: unknown) => void;
export let lastReject: (error: unknown) => void;

/** An executor shared by all promises, which saves a closure for each. */
export function keepSettlers(resolve: typeof lastResolve, reject: typeof lastReject): void {
  lastResolve = resolve;
  lastReject = reject;
}
