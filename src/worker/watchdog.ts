/**
 * Ends a process whose event loop does not turn: code that loops for ever cannot be stopped from
 * inside. A thread of its own watches a heartbeat and, inside a batch, kills the process; the rows it
 * had locked are free at once, and the next worker runs its events alone.
 */
import { Worker } from 'node:worker_threads'

/** A running watchdog. Batches may overlap: each `enter` needs its `leave`. */
export interface Watchdog {
  /** A batch begins. */
  enter(): void
  /** A batch ended. */
  leave(): void
  /** Stops watching. */
  stop(): void
}

/** Cells of the shared memory. */
const beats = 0
const batches = 1
const stopped = 2

/**
 * The thread's program, as text: it must run whatever loads the rest of the code, and needs nothing.
 *
 * Time is counted in waits of the thread itself, never by a clock: while the whole process is
 * stopped (a debugger, a laptop asleep) the thread does not count either.
 */
const program = `
const { workerData } = require('node:worker_threads')
const { writeSync } = require('node:fs')
const { cells, tickMs, limitMs } = workerData
let last = -1
let still = 0
while (Atomics.wait(cells, ${stopped}, 0, tickMs) === 'timed-out') {
  const beat = Atomics.load(cells, ${beats})
  if (beat !== last || Atomics.load(cells, ${batches}) === 0) {
    last = beat
    still = 0
    continue
  }
  still += tickMs
  if (still < limitMs) continue
  try {
    writeSync(2, 'hookledger: the event loop did not turn for ' + limitMs + ' ms inside a batch: this worker ends itself, its events run alone next\\n')
  } catch {}
  process.kill(process.pid, 'SIGKILL')
}
`

/** Starts to watch this process. `limitMs` is how long the loop may stand still inside a batch. */
export function startWatchdog(limitMs: number): Watchdog {
  const tickMs = Math.max(10, Math.min(250, Math.floor(limitMs / 8)))
  const cells = new Int32Array(new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT))
  const thread = new Worker(program, {
    eval: true,
    workerData: { cells, tickMs, limitMs },
    execArgv: [],
    env: {},
  })
  // a thread that cannot run must not take the worker down with it; it is told nothing and tells nothing
  thread.on('error', () => {})
  thread.unref()
  const heart = setInterval(() => Atomics.add(cells, beats, 1), tickMs)
  heart.unref()
  return {
    enter() {
      Atomics.add(cells, batches, 1)
    },
    leave() {
      Atomics.sub(cells, batches, 1)
    },
    stop() {
      clearInterval(heart)
      Atomics.store(cells, stopped, 1)
      Atomics.notify(cells, stopped)
    },
  }
}
