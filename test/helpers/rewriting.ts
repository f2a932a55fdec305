/**
 * What the code transformers of APMs do to a client as it is loaded: they print a file anew, and wrap code of methods
 * in it.
 */
import ts from 'typescript';

export interface Rewriting {
  /** The methods of `Redis` that are wrapped. */
  readonly methods: readonly string[];
  /** Whether callers get a promise that was derived from the method's. */
  readonly derives?: boolean;
}

/** The channel on which a wrapped method publishes its arguments, before its own code runs. */
export const channelOf = (method: string) => `tracing:rewritten:${method}:start`;

/** Takes the text of `Redis.js`, whose methods are indented by four. */
export function rewrite(text: string, { methods, derives = false }: Rewriting): string {
  const wrapped = methods.reduce((before, method) => {
    const after = before.replace(
      new RegExp(`^ {4}${method}\\((.*)\\) \\{\\n([\\s\\S]*?)^ {4}\\}$`, 'm'),
      (_, parameters: string, body: string) => {
        const numbered = parameters.split(', ').map((_, index) => `tr_ch_apm$${index}`);
        return `${method}(${numbered.join(', ')}, ...others) {
          const given = [${numbered.join(', ')}, ...others].slice(0, arguments.length);
          const message = { arguments: given, self: this };
          const traced = () => {
            const own = function (${parameters}) { ${body} };
            return own.apply(this, given);
          };
          if (!tr_ch_apm$${method}.hasSubscribers) return traced();
          return tr_ch_apm$${method}.runStores(message, () => {
            const result = traced();
            ${derives ? 'if (result instanceof Promise) return result.then((value) => value, (error) => { throw error; });' : ''}
            return result;
          });
        }`;
      },
    );
    if (after === before) throw new Error(`there is no ${method}`);
    return after;
  }, text);
  const channels = methods.map((method) => `const tr_ch_apm$${method} = channels.channel('${channelOf(method)}');`);
  const all = `const channels = require('node:diagnostics_channel');${channels.join('')}${wrapped}`;
  const file = ts.createSourceFile('Redis.js', all, ts.ScriptTarget.Latest);
  const printed = ts.createPrinter({ removeComments: true }).printFile(file);
  return printed.replaceAll(/^ +/gm, (indentation) => ' '.repeat(indentation.length / 2));
}
