// Runs one of the TypeScript files here with tsx, and sees to it that there is something to run: in a fresh clone of
// the repository it installs the packages and builds `ioredis-coalesce` first, once.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const inRepository = existsSync(`${root}tools/redis-server.ts`);

const [file = 'src/main.ts'] = process.argv.slice(2);
if (!isInstalled()) {
  prepare('the packages are not installed', ['ci']);
}
// A tsconfig named there may lead to the package's sources, as the repository's own does.
if (inRepository && !process.env.TSX_TSCONFIG_PATH && !existsSync(`${root}dist/index.js`)) {
  prepare('ioredis-coalesce is not built', ['run', '--silent', 'build']);
}
const { register } = await import('tsx/esm/api');
register();
await import(pathToFileURL(fileURLToPath(new URL(file, import.meta.url))).href);

function isInstalled() {
  try {
    import.meta.resolve('tsx/esm/api');
    import.meta.resolve('fastify');
    return true;
  } catch {
    return false;
  }
}

function prepare(problem, command) {
  if (!inRepository) {
    console.error(`${problem}: run "npm install" in this folder first`);
    process.exit(1);
  }
  console.error(`${problem}; running "npm ${command.join(' ')}" at the top of the repository …`);
  const { status } = spawnSync('npm', command, { cwd: root, stdio: 'inherit', shell: process.platform === 'win32' });
  if (status !== 0) {
    console.error(`"npm ${command.join(' ')}" failed, see above`);
    process.exit(1);
  }
}
