/** `npm start`: `hookledger dev` on the demo shop, with the simulation; `npm start -- --no-simulate` without. */
import { fileURLToPath } from 'node:url'

const command = fileURLToPath(new URL('hookledger.mjs', import.meta.url))
// the worker process runs what this one is said to run: the command line, not this script again
process.argv = [process.argv[0], command, 'dev', '--simulate', ...process.argv.slice(2)]

if (process.env.npm_lifecycle_event === 'start') {
  // npm passes a signal to its shell, and some shells die of it without passing it on
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watch)
    process.kill(process.pid, 'SIGTERM')
  }, 250)
  watch.unref()
}

// the web page is built from source as everything else is
const { buildConsoleIfOlder } = await import('./build-console.mjs')
await buildConsoleIfOlder().catch((error) => {
  // all else works without it, and the server says at /console what is missing
  console.error(
    `the console could not be built, run npm run console to see why: ${error.message.split('\n')[0]}`,
  )
})
await import('./hookledger.mjs')
