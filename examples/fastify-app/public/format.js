export const VARIANTS = ['plain', 'coalesced', 'cached'];
/** Those that send each command: what a cache answers is in no write. */
export const SENDERS = ['plain', 'coalesced'];

/** Three significant digits or so, whatever the size. */
export function digits(value) {
  if (!Number.isFinite(value)) return '–';
  if (value >= 100) return Math.round(value).toLocaleString('en-US');
  if (value >= 10) return value.toFixed(1);
  if (value >= 1) return value.toFixed(2);
  return value === 0 ? '0' : String(Number(value.toPrecision(2)));
}

/** Writes per command, the way round that can be imagined: `1 per 128`. */
export function perWrite(value) {
  if (!Number.isFinite(value)) return '–';
  return value === 0 ? '0' : `1 per ${Number(digits(1 / value).replaceAll(',', '')).toLocaleString('en-US')}`;
}

/** For an axis: no zeros at the end. */
export function tick(value) {
  if (value === null) return '';
  if (value >= 10_000) return `${tick(value / 1000)}k`;
  return Number(value.toPrecision(3)).toLocaleString('en-US');
}

export function median(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  return sorted.length === 0 ? Number.NaN : sorted[sorted.length >> 1];
}

/** Makes an element: attributes, then children; text stays text. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/**
 * Not the attribute `disabled`: with it a focused button loses the keyboard's place. Its handler must ask `isDisabled`.
 */
export function disable(button, disabled) {
  button.setAttribute('aria-disabled', String(disabled));
}

export function isDisabled(button) {
  return button.getAttribute('aria-disabled') === 'true';
}
