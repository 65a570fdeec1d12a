/**
 * The embedded PostgreSQL of `dev`, kept running: when it is ended from outside it is started again on
 * the same port, so that connections come back by themselves.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../postgres/embedded/start.ts'
import { tellFailure } from './failure.ts'

/** A database server that is kept running. */
export interface KeptPostgres {
  /** The owner's URL, with its password. */
  readonly url: string
  /** Stops it for good. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>
}

/** Who is told of it. */
export interface KeepOptions {
  readonly dataDir: string
  readonly note: (text: string) => void
  readonly warn: (text: string) => void
  /** It could not be started again. */
  readonly onLost: () => void
}

const restarts = 5

/** Starts the server and keeps it running until it is stopped. */
export async function keepPostgres(options: KeepOptions): Promise<KeptPostgres> {
  const { dataDir, note } = options
  let stopping = false
  let current = await startEmbeddedPostgres({ dataDir, log: note })
  const { port } = current
  const keep = async (server: EmbeddedPostgres): Promise<void> => {
    await server.exited
    if (stopping) return
    options.warn('the embedded PostgreSQL ended: it is started again')
    const next = await restart(options, port, () => stopping)
    if (next === null) return options.onLost()
    current = next
    if (stopping) await current.stop('fast')
    else void keep(current)
  }
  void keep(current)
  return {
    url: current.url,
    async stop(mode = 'fast') {
      stopping = true
      await current.stop(mode)
    },
  }
}

async function restart(
  options: KeepOptions,
  port: number,
  isStopping: () => boolean,
): Promise<EmbeddedPostgres | null> {
  for (let attempt = 1; attempt <= restarts && !isStopping(); attempt++) {
    try {
      return await startEmbeddedPostgres({ dataDir: options.dataDir, port, log: options.note })
    } catch (error) {
      options.warn(`the embedded PostgreSQL did not start again: ${tellFailure(error).line}`)
      await sleep(250 * 2 ** attempt)
    }
  }
  return null
}
