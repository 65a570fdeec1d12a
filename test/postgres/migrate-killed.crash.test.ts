import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { diagnose } from '../../src/postgres/doctor.ts'
import { schemaVersion } from '../../src/postgres/migrate.ts'
import { migrations } from '../../src/postgres/migrations.generated.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts'

let database: TestDatabase
beforeEach(async () => {
  database = await createTestDatabase()
})
afterEach(() => database.drop())

/** Runs the program; resolves with the signal that ended it, or null. */
async function migrateUntil(statement: number): Promise<string | null> {
  const program = fileURLToPath(new URL('./killed-migrate.ts', import.meta.url))
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', program, database.url, String(statement)],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  if (signal === null) expect(code).toBe(0)
  return signal
}

describe('a process that is killed while it migrates', () => {
  it('leaves what the next one goes on from, to the same end', async () => {
    const db = createDatabase(database.pool(), 'hookledger')
    const versions: number[] = []
    let kills = 0
    for (let statement = 3; ; statement += 4) {
      if ((await migrateUntil(statement)) === null) break
      kills++
      versions.push(await schemaVersion(db))
    }
    expect(kills).toBeGreaterThan(2)
    expect(versions).toEqual([...versions].sort((a, b) => a - b))
    const applied = await db.query<{ name: string }>({
      text: 'select name from hookledger.migrations order by migration_id',
    })
    expect(applied.map(({ name }) => name)).toEqual(migrations.map(({ name }) => name))
    expect(await diagnose(db, { environment: 'test' })).toEqual([])
  })

  it('holds up nobody: others that migrate at the same time end with the same schema', async () => {
    const ends = await Promise.all([
      migrateUntil(12),
      migrateUntil(20),
      migrateUntil(0),
      migrateUntil(0),
    ])
    expect(ends.slice(2)).toEqual([null, null])
    expect(
      await diagnose(createDatabase(database.pool(), 'hookledger'), { environment: 'test' }),
    ).toEqual([])
  })
})
