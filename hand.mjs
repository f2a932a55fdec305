import { execSync, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
const require = createRequire('/work/main/package.json');
const Plain = require('ioredis').default;
const { coalesce } = require('/work/main/dist/index.cjs');
const port = 7411;
const server = spawn('redis-server', ['--port', String(port), '--save', ''], { stdio: 'ignore' });
await new Promise((r) => setTimeout(r, 700));
const make = (o = {}, c = {}) => (c === null ? new Plain({ port, ...o }) : coalesce(new Plain({ port, ...o }), c));
const med = (a) => a.sort((x, y) => x - y)[a.length >> 1];
async function compare(name, variants, rounds = 15, ms = 300) {
  const res = Object.fromEntries(Object.keys(variants).map((k) => [k, { t: [], c: [] }]));
  for (const [, run] of Object.entries(variants)) { const end = performance.now() + 300; while (performance.now() < end) await run(); }
  for (let r = 0; r < rounds; r++) {
    const es = Object.entries(variants); if (r % 2) es.reverse();
    for (const [k, run] of es) {
      let n = 0; const c0 = process.cpuUsage(); const t0 = performance.now();
      while (performance.now() - t0 < ms) n += await run();
      const dt = performance.now() - t0; const c = process.cpuUsage(c0);
      res[k].t.push(n / dt); res[k].c.push((c.user + c.system) / n);
    }
  }
  const base = Object.keys(variants)[0];
  for (const k of Object.keys(variants)) {
    const rt = med(res[k].t.map((x, i) => x / res[base].t[i])), rc = med(res[k].c.map((x, i) => x / res[base].c[i]));
    console.log(name.padEnd(34), k.padEnd(16), (med([...res[k].t])).toFixed(1).padStart(9), 'k/s', (med([...res[k].c])).toFixed(3), 'µs', ' thr', rt.toFixed(3), 'cpu', rc.toFixed(3));
  }
}
const burst = (c, n = 200) => async () => { const p = new Array(n); for (let i = 0; i < n; i++) p[i] = c.get('key' + (i % 100)); await Promise.all(p); return n; };
const a = make(); await a.set('key1', 'v'.repeat(100)); for (let i = 0; i < 100; i++) a.set('key' + i, 'v'.repeat(100)); await a.ping();
const ac = new AbortController();
const v0 = a.coalescer.withOptions({}), vt = a.coalescer.withOptions({ timeout: 5000 }), vs = a.coalescer.withOptions({ signal: ac.signal });
await compare('view, bursts of 200', { direct: burst(a), view: burst(v0), timeout: burst(vt), signal: burst(vs) });
const own = async () => { const p = new Array(200); for (let i = 0; i < 200; i++) { const c = new AbortController(); p[i] = a.coalescer.withOptions({ signal: c.signal }).get('key' + (i % 100)); } await Promise.all(p); return 200; };
await compare('a view and a signal per call', { direct: burst(a), own });
{ const xs = []; for (let r = 0; r < 11; r++) { const t = performance.now(); for (let i = 0; i < 1e5; i++) a.coalescer.withOptions({ timeout: 5000 }); xs.push((performance.now() - t) / 1e5 * 1e3); } console.log('to make a view', med(xs).toFixed(3), 'µs'); }
const st = make({ socketTimeout: 10000 }), no = make(); await st.ping(); await no.ping();
await compare('socketTimeout, bursts of 200', { without: burst(no), with: burst(st) });
await compare('socketTimeout, one by one', { without: burst(no, 1), with: burst(st, 1) });
const pl = make({}, null), co = make(); await pl.ping(); await co.ping();
const pipe = (c, cmd, n = 8) => async () => { const ps = []; for (let l = 0; l < 10; l++) { const p = c.pipeline(); for (let i = 0; i < n; i++) cmd(p, i); ps.push(p.exec()); } await Promise.all(ps); return 10 * n; };
await compare('pipelines, all fall through', { plain: pipe(pl, (p, i) => p.object('ENCODING', 'key' + i)), coalesced: pipe(co, (p, i) => p.object('ENCODING', 'key' + i)) });
await compare('pipelines with callbacks', { plain: pipe(pl, (p, i) => p.get('key' + i, () => {})), coalesced: pipe(co, (p, i) => p.get('key' + i, () => {})) });
await compare('pipelines of 8 GETs', { plain: pipe(pl, (p, i) => p.get('key' + i)), coalesced: pipe(co, (p, i) => p.get('key' + i)) });
for (const c of [a, st, no, pl, co]) c.disconnect();
server.kill(); process.exit(0);
