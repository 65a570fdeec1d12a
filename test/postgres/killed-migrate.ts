/** A program that migrates the database of a URL and kills itself before its nth statement; 0: never. */
import pg from 'pg'
import { migrate } from '../../src/postgres/migrate.ts'
import { createDatabase, createPool } from '../../src/postgres/pool.ts'

const [url = '', nth = '0'] = process.argv.slice(2)
let left = Number(nth)

const client = pg.Client.prototype as unknown as { query: (...args: unknown[]) => unknown }
const original = client.query
client.query = function (...args: unknown[]) {
  if (--left === 0) process.kill(process.pid, 'SIGKILL')
  return original.apply(this, args)
}

async function main(): Promise<void> {
  const pool = createPool({ connectionString: url })
  const { applied } = await migrate(createDatabase(pool, 'hookledger'), {
    environment: 'test',
    partitionsAheadDays: 8,
  })
  console.log(JSON.stringify(applied))
  await pool.end()
}

void main()
