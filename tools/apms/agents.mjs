// The same for ES modules, with the hooks that the agents ask for.
import { register } from 'node:module';

const HOOKS = {
  'open-telemetry': '@opentelemetry/instrumentation/hook.mjs',
  'dd-trace': 'dd-trace/loader-hook.mjs',
  elastic: 'elastic-apm-node/loader.mjs',
};
const { APM } = process.env;
if (APM === 'newrelic') await import('newrelic/esm-loader.mjs');
else if (APM in HOOKS) register(HOOKS[APM], import.meta.url);
await import('./agents.cjs');
