import { startBenchServer, createBenchPool, settle } from './server.ts'
import { checkoutEvents } from './checkout-events.ts'
import { benchHookledger, benchSecret } from './license.ts'
import { partsOf } from '../src/hookledger.ts'
import { createDatabase } from '../src/postgres/pool.ts'
import { migrate } from '../src/postgres/migrate.ts'
import { signStripe } from '../src/testing/sign.ts'
const N = Number(process.env.N ?? 20000), R = Number(process.env.R ?? 3), LOOPS = Number(process.env.LOOPS ?? 2), BATCH = Number(process.env.BATCH ?? 500)
const server = await startBenchServer()
try {
  const rates: number[] = []
  for (let r = 0; r < R; r++) {
    const schema = `p${r}`
    const pool = createBenchPool(server.url, 10)
    const db = createDatabase(pool, schema)
    await migrate(db, { environment: 'test', partitionsAheadDays: 2 })
    const h = benchHookledger(pool, schema, { limits: { workBatch: BATCH } })
    const parts = partsOf(h)
    await parts.register()
    const events = checkoutEvents(`r${r}`, N)
    await pool.query(`insert into ${schema}.orders (order_id, workflow, state, subject, expected_amount, currency) select o, 'license', 'pending', 'user:'||o, 4900, 'USD' from unnest($1::text[]) o`, [events.map(e => e.order)])
    let i = 0
    const t00 = performance.now()
    await Promise.all(Array.from({ length: 200 }, async () => { while (i < N) { const e = events[i++]!; const o = await h.ingest({ source: 'stripe', headers: signStripe(e.body, benchSecret), rawBody: e.body }); if (o.status !== 200) throw new Error(JSON.stringify(o)) } }))
    const ingest = N / (performance.now() - t00) * 1000
    await settle(server.url)
    let done = 0
    const t0 = performance.now()
    const c0 = process.cpuUsage()
    await new Promise<void>(async (resolve) => {
      parts.signals.on('inbox.batch.finished', ({ events }) => { done += events; if (done >= N) resolve() })
      parts.signals.on('worker.loop.failed', (e) => console.log(e))
      await h.start({ loops: LOOPS })
    })
    const ms = performance.now() - t0
    const c = process.cpuUsage(c0)
    rates.push(N / ms * 1000)
    const { rows } = await pool.query(`select (select count(*) from ${schema}.ledger_decisions where final) d, (select count(*) from ${schema}.entitlements where active) e`)
    for (const q of ["select kind, final, count(*), min(reason) from SCH.ledger_decisions group by 1,2", "select count(*) from SCH.inbox_ready", "select kind, count(*), min(event_key), max(event_key), min(decided_at), max(decided_at), count(distinct xid::text) from SCH.ledger_decisions group by 1, event_key/100 order by min(event_key)", "select tableoid::regclass, count(*), count(distinct event_key) from SCH.payloads group by 1","select count(*) from SCH.inbox_events","select state,count(*) from SCH.orders group by 1"]) console.log((await pool.query(q.replaceAll("SCH", schema))).rows); console.log('ev/s', (N / ms * 1000).toFixed(0), 'js cpu us/ev', ((c.user + c.system) / N).toFixed(1), 'ingest/s', ingest.toFixed(0), rows[0])
    await h.stop()
    await pool.end()
  }
} finally { await server.stop() }
