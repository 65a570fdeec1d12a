/**
 * One embedded PostgreSQL for a whole test run, shared by the projects that need one, and a stopped
 * copy of it that crash tests start servers of their own from. Both go when the last project is done.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { startEmbeddedPostgres } from '../../src/postgres/embedded/start.ts'
import type { EmbeddedPostgres } from '../../src/postgres/embedded/start.ts'
import { copyDataDir, makeTestDir, removeDataDir, sweepKilledRuns } from './data-dirs.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of the run's server as superuser; its database is not for tests, see createTestDatabase. */
    postgresAdminUrl: string
    /** Data directory of a server that was set up and stopped. Copy it, never start it. */
    postgresTemplateDir: string
  }
}

interface Shared {
  readonly server: EmbeddedPostgres
  readonly template: string
  stop(): Promise<void>
}

// Each project loads this module for itself; the process is what they share.
const shared = globalThis as typeof globalThis & {
  hookledgerTestServer?: { users: number; started: Promise<Shared> }
}

/** Called by vitest once for each project that has tests to run; the result is its teardown. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const entry = (shared.hookledgerTestServer ??= { users: 0, started: start() })
  entry.users += 1
  const { server, template } = await entry.started
  project.provide('postgresAdminUrl', server.url)
  project.provide('postgresTemplateDir', template)
  return async () => {
    entry.users -= 1
    if (entry.users > 0) return
    delete shared.hookledgerTestServer
    await (await entry.started).stop()
  }
}

async function start(): Promise<Shared> {
  await sweepKilledRuns()
  const directory = makeTestDir()
  const template = join(directory, 'template')
  const main = join(directory, 'main')
  const first = await startEmbeddedPostgres({ dataDir: template })
  await first.stop()
  copyDataDir(template, main)
  const server = await startEmbeddedPostgres({ dataDir: main })
  return {
    server,
    template,
    async stop() {
      // Nothing in it is kept: no reason to write a checkpoint.
      await server.stop('immediate')
      removeDataDir(main)
      removeDataDir(template)
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
