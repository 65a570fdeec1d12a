/**
 * Watches whether anything leaves this process while workflows are played: `decide` may be played any number of times, so
 * whatever it sends would be sent that often. A request that is caught goes nowhere.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setTimeout as sleep } from 'node:timers/promises'
import { watchOutgoingSockets } from '../../testing/outgoing-sockets.ts'

/** What Node tells of before it happens. */
const channels = [
  ['http.client.request.start', 'an HTTP request'],
  ['undici:request:create', 'an HTTP request'],
  ['child_process', 'a process'],
] as const

/** How long after the play something may still begin, in milliseconds. */
const afterMs = 20

/** Runs and answers what was begun meanwhile, in a few words; empty where nothing was. */
export async function watchIo(run: () => void): Promise<ReadonlySet<string>> {
  const seen = new Set<string>()
  const listeners = channels.map(([name, what]) => {
    const listener = (): void => void seen.add(what)
    subscribe(name, listener)
    return () => unsubscribe(name, listener)
  })
  // whatever connects, drivers of databases too; it reaches nobody
  const unwatch = watchOutgoingSockets((socket) => {
    seen.add('a connection')
    socket.destroy()
  })
  const { fetch } = globalThis
  globalThis.fetch = () => {
    seen.add('fetch()')
    return Promise.resolve(new Response('{}', { headers: { 'content-type': 'application/json' } }))
  }
  try {
    run()
    await sleep(afterMs)
  } finally {
    globalThis.fetch = fetch
    unwatch()
    for (const end of listeners) end()
  }
  return seen
}
