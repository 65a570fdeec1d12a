import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url))
const globalSetup = ['test/support/global-postgres.ts']

export default defineConfig({
  resolve: {
    alias: [
      { find: /^hookledger$/, replacement: source('index.ts') },
      { find: /^hookledger\/console$/, replacement: source('server/console/index.ts') },
      { find: /^hookledger\/testing$/, replacement: source('testing/index.ts') },
    ],
  },
  test: {
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/**/*.{db,crash,e2e,prom}.test.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'db',
          include: ['test/**/*.db.test.ts'],
          globalSetup,
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'crash',
          include: ['test/**/*.crash.test.ts'],
          exclude: ['test/**/*.long.crash.test.ts'],
          globalSetup,
          // One file at a time and after all others: they start and kill servers and whole processes.
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'browser',
          include: ['test/**/*.e2e.test.ts'],
          globalSetup,
          // After what needs the machine for itself; two at a time, since browsers mostly wait.
          maxWorkers: 2,
          sequence: { groupOrder: 3 },
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'alerts',
          // What needs promtool, of Prometheus: npm run alerts.
          include: ['test/**/*.prom.test.ts'],
          globalSetup,
          sequence: { groupOrder: 4 },
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'long',
          // What takes longer than a test run may: npm run test:crash.
          include: ['test/**/*.long.crash.test.ts'],
          globalSetup,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
          testTimeout: 600_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
