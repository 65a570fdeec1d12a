/** A process with a watchdog of 400 ms that does what its argument says. */
import { startWatchdog } from '../../src/worker/watchdog.ts'

function block(milliseconds: number): void {
  const until = performance.now() + milliseconds
  while (performance.now() < until);
}

const watchdog = startWatchdog(400)
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const keepAlive = setInterval(() => {}, 1000)
// the thread takes a moment to start; a worker has long been at work before an event can block it
await pause(300)
process.stdout.write('ready\n')

switch (process.argv[2]) {
  case 'blocked inside':
    watchdog.enter()
    block(60_000)
    break
  case 'blocked outside':
    block(1500)
    break
  case 'blocked after leaving':
    watchdog.enter()
    watchdog.leave()
    block(1500)
    break
  case 'blocked in the second of two':
    watchdog.enter()
    watchdog.enter()
    watchdog.leave()
    block(60_000)
    break
  case 'turning inside':
    watchdog.enter()
    for (let turn = 0; turn < 15; turn++) {
      block(100)
      await pause(30)
    }
    break
  case 'suspended inside':
    watchdog.enter()
    await pause(500)
    break
  case 'stopped':
    watchdog.enter()
    watchdog.stop()
    await pause(100)
    block(1500)
    break
}
process.stdout.write('done\n')
clearInterval(keepAlive)
