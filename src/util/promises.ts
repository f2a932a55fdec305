type NodeCallback = (error: unknown, value?: unknown) => void;

/**
 * Calls `callback`, if it is a function, when the promise settles. Host: `standard-as-callback`, called in
 * `Command#initPromise` and `Script#execute`; an error that the callback throws surfaces in a separate timer, of the
 * present global as in the host: an exception to `clock.ts`.
 */
export function asCallback(promise: Promise<unknown>, callback: unknown): void {
  if (typeof callback !== 'function') return;
  const settled = callback as NodeCallback;
  promise.then(
    (value) => call(() => (value === undefined ? settled(null) : settled(null, value))),
    (error) => call(() => settled(error || Object.assign(new Error(`${error}`), { cause: error }))),
  );
}

/** The promise of a call that is not sent, whose callback gets the error, too. */
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

/** What settles the promise that was made last with `keepSettlers`; to be read before another one is made. */
export let lastResolve: (value: unknown) => void;
export let lastReject: (error: unknown) => void;

/** One executor for all promises: it saves a closure for each. */
export function keepSettlers(resolve: typeof lastResolve, reject: typeof lastReject): void {
  lastResolve = resolve;
  lastReject = reject;
}
