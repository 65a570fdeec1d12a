/**
 * The benchmarks: `npm run bench -- accept|process|latency|backlog|hot-order|dispatch|reconcile|console [--json]`.
 * Everything is measured side by side in one run; exit 3 when a ratio is below its floor.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** As `start` runs its worker: room for a batch's objects to die young. */
const youngGeneration = '--max-semi-space-size=64'

const child = fork(fileURLToPath(new URL('run.js', import.meta.url)), process.argv.slice(2), {
  execArgv: [...process.execArgv, youngGeneration],
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === 'SIGINT' ? 130 : 1)
})
