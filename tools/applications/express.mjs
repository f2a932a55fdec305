/** The recipe for Express: 20 browsers, each with ten requests one after the other. */
import './recipe.mjs';

async function browse() {
  let cookie = '';
  const seen = [];
  for (let visit = 0; visit < 10; visit += 1) {
    const response = await fetch(`http://127.0.0.1:${process.env.PORT}/`, { headers: { cookie } });
    cookie = response.headers.get('set-cookie')?.split(';')[0] ?? cookie;
    seen.push(await response.json());
  }
  return seen;
}

console.log(JSON.stringify(await Promise.all(Array.from({ length: 20 }, browse))));
process.exit(0);
