/** Crashes are of a process: the files of this project run one after the other. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: { include: ['*.spec.ts'], fileParallelism: false, testTimeout: 30_000 },
})
