import { configDefaults, defineConfig } from 'vitest/config';
import base, { PACKAGE_TESTS } from './vitest.config.js';

const { projects: _, ...settings } = base.test ?? {};

/** The package as it is published, the live page in a browser, and programs that take long. */
export default defineConfig({
  ...base,
  test: { ...settings, include: PACKAGE_TESTS, exclude: configDefaults.exclude },
});
