/** A stand-alone server on a free port, with short times, for tests. */
import type { ServerOptions } from '../../src/server/server.ts'
import { createHookledgerServer } from '../../src/server/server.ts'
import type { HookledgerServer } from '../../src/server/server.ts'
import type { Recorded } from '../http/recorded-ingest.ts'
import { recordedIngest } from '../http/recorded-ingest.ts'

/** A running server and what it was asked to ingest. */
export interface Served {
  readonly server: HookledgerServer
  readonly port: number
  readonly url: string
  readonly received: Recorded[]
  readonly refused: string[]
}

const running: HookledgerServer[] = []

/** Starts a server whose only source is `stripe`. */
export async function serve(options: Partial<ServerOptions> = {}): Promise<Served> {
  const { ingest, received } = recordedIngest()
  const refused: string[] = []
  const server = createHookledgerServer({
    ingest,
    limits: { bodyBytes: 4096, headerBytes: 16 * 1024, requestTimeoutMs: 600 },
    hasSource: (name) => name === 'stripe',
    onRefused: (source, reason, status) => refused.push(`${source} ${reason} ${status}`),
    ready: () => Promise.resolve(true),
    checkEveryMs: 50,
    ...options,
  })
  running.push(server)
  const { port } = await server.listen(0, '127.0.0.1')
  return { server, port, url: `http://127.0.0.1:${port}`, received, refused }
}

/** Stops every server that a test started. */
export async function stopServers(): Promise<void> {
  await Promise.all(running.splice(0).map((server) => server.stop(0)))
}
