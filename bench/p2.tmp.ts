import { startBenchServer, createBenchPool } from './server.ts'
import { createDatabase } from '../src/postgres/pool.ts'
import { migrate } from '../src/postgres/migrate.ts'
const server = await startBenchServer()
try {
  const pool = createBenchPool(server.url, 4)
  await migrate(createDatabase(pool, 'p'), { environment: 'test', partitionsAheadDays: 2 })
  await pool.query(`insert into p.payloads select g, current_date, repeat(chr(65+g%26), 2700)::bytea from generate_series(1,1500) g; insert into p.inbox_ready select g, current_date from generate_series(1,1500) g`)
  console.log((await pool.query('select version()')).rows)
  const db = createDatabase(pool, 'p')
  const keys = Array.from({ length: 500 }, (_, i) => String(i + 1))
  for (let n = 0; n < 5; n++) {
    await db.transaction(async (tx) => {
      const rows = await tx.query<{event_key: string, body: Uint8Array}>({ text: 'select event_key, body from p.claimed_payloads($1::bigint[], $2::date[])', values: [keys, ['2026-11-30']], binary: true })
      const m = new Map(rows.map(r => [BigInt(r.event_key), r.body]))
      console.log(rows.length, m.size, rows.filter(r => r.body[0] !== 65 + Number(r.event_key) % 26).length, rows.slice(0,3).map(r => r.event_key), rows.slice(250, 253).map(r=>r.event_key))
    })
  }
  await pool.end()
} finally { await server.stop() }
