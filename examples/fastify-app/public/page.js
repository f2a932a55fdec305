import { CascadeView } from './cascade-view.js';
import { LoadView } from './load-view.js';
import { RequestView } from './request-view.js';

const status = document.querySelector('#redis');
const trouble = document.querySelector('#trouble');
const views = { load: new LoadView(request), cascade: new CascadeView(request), request: new RequestView(request) };
let serviceUp = false;
let redis;
let running = false;

const events = new EventSource('live/events');
events.addEventListener('open', () => {
  serviceUp = true;
  showStatus();
});
events.addEventListener('error', () => {
  serviceUp = false;
  showStatus();
});
on('redis', (state) => {
  redis = state;
  showStatus();
});
on('setting', (setting) => {
  views.load.setting(setting);
  document.querySelector('#machine').textContent = `Node ${setting.node}, ${setting.cores} cores.`;
});
on('run', (run) => {
  running = run.state === 'running';
  views.load.runChanged(run);
  showStatus();
});
on('sample', (sample) => views.load.sampled(sample));
useTabs();

function on(event, handle) {
  events.addEventListener(event, ({ data }) => handle(JSON.parse(data)));
}

/** Asks the service; what it refuses, or that it does not answer, is shown. */
async function request(method, path, body) {
  const json = { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  try {
    const response = await fetch(path, { method, ...(body === undefined ? {} : json) });
    const answer = response.status === 204 ? undefined : await response.json();
    if (response.ok) {
      showTrouble();
      return answer;
    }
    showTrouble(`${answer.message}.`);
  } catch {
    showTrouble('The service does not answer.');
  }
  return undefined;
}

function showStatus() {
  const up = serviceUp && redis?.up === true;
  views.load.ready = up;
  views.cascade.ready = views.request.ready = up && !running;
  status.dataset.up = String(up);
  if (!serviceUp) {
    status.textContent = 'Service not reachable';
    showTrouble('The service does not answer. This page connects again by itself.');
  } else if (redis?.up === false) {
    status.textContent = `Redis at ${redis.address} is down`;
    showTrouble(`Redis at ${redis.address} is down. The service tries again by itself, and this page will tell.`);
  } else if (redis) {
    status.textContent = `${redis.version} at ${redis.address}`;
    showTrouble();
  }
}

function showTrouble(text = '') {
  if (trouble.textContent !== text) trouble.textContent = text;
  trouble.hidden = text === '';
}

/** Tabs as the keyboard knows them: arrows, Home and End; the address names the view, so that a reload stays. */
function useTabs() {
  const tabs = [...document.querySelectorAll('[role=tab]')];
  const select = (chosen) => {
    for (const tab of tabs) {
      const selected = tab === chosen;
      tab.setAttribute('aria-selected', String(selected));
      tab.tabIndex = selected ? 0 : -1;
      document.querySelector(`#${tab.getAttribute('aria-controls')}`).hidden = !selected;
    }
  };
  const nameOf = (tab) => tab.id.replace('tab-', '');
  tabs.forEach((tab, index) => {
    tab.addEventListener('click', () => {
      history.replaceState(null, '', `#${nameOf(tab)}`);
      select(tab);
    });
    tab.addEventListener('keydown', ({ key }) => {
      const steps = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1 };
      const next = tabs.at(steps[key] === undefined ? index : steps[key] % tabs.length);
      if (next !== tab) {
        next.focus();
        next.click();
      }
    });
  });
  select(tabs.find((tab) => `#${nameOf(tab)}` === location.hash) ?? tabs[0]);
}
