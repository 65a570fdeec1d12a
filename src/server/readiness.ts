/**
 * Whether this process can take work, asked at most once a second however often it is asked for:
 * anybody may ask, and nobody may turn that into load on the database.
 */

/** Resolves true when work can be taken: the database answers and its schema is current. */
export type ReadyCheck = () => Promise<boolean>

/** How long an answer is kept and how long one may take, in milliseconds. */
const keptMs = 1000
const patienceMs = 2000

/** Wraps a check so that it runs once at a time; a check that fails or is late says no. */
export function createReadiness(check: ReadyCheck): ReadyCheck {
  let running: Promise<boolean> | undefined
  let last: { readonly ready: boolean; readonly at: number } | undefined
  const run = async (): Promise<boolean> => {
    const ready = await withPatience(check)
    last = { ready, at: performance.now() }
    running = undefined
    return ready
  }
  return () => {
    if (last !== undefined && performance.now() - last.at < keptMs)
      return Promise.resolve(last.ready)
    return (running ??= run())
  }
}

async function withPatience(check: ReadyCheck): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => {
      resolve(false)
    }, patienceMs)
  })
  try {
    return await Promise.race([check(), late])
  } catch {
    return false
  } finally {
    clearTimeout(timer)
  }
}
