import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { handle } from 'hookledger'
import { clearHooks, createProbe, probe, probeWorkflow, type Probe, type ProbeHooks } from '../support/probe.ts'
import { audit } from '../../src/report/audit.ts'
const hooks: ProbeHooks = {}
let runPlain: any
let bench: Probe
beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow(hooks)], handlers: [handle('probe', 'plain', (input) => runPlain(input as never))], limits: { firstRetryMs: 600_000, watchdogMs: 400 } })
})
afterAll(() => bench.close())
beforeEach(async () => { clearHooks(hooks); runPlain = () => Promise.resolve(); await bench.reset() })
const states = () => bench.rows(`select event_id, state, attempts, last_error from webhook_inbox order by event_id`)
describe('attack', () => {
  it('unawaited failing query in apply', async () => {
    hooks.apply = async ({ db, order }) => { if (order.id === 'bad') void db.query(`insert into shop.accounts values (null, 1)`).catch(() => {}) }
    await bench.deliver(probe('pay', { id: 'e1', order: 'a' }), probe('pay', { id: 'e2', order: 'bad' }), probe('pay', { id: 'e3', order: 'c' }))
    let err; try { await bench.work() } catch (e) { err = e }
    console.log('UNAWAITED last', String(err), await states())
  })
  it('unawaited then others', async () => {
    hooks.apply = async ({ db, order }) => { if (order.id === 'bad') void db.query(`insert into shop.accounts values (null, 1)`).catch(() => {}); else await db.query(`select 1`) }
    await bench.deliver(probe('pay', { id: 'e1', order: 'bad' }), probe('pay', { id: 'e2', order: 'good' }))
    let err; try { await bench.work() } catch (e) { err = e }
    console.log('UNAWAITED first', String(err), await states())
  })
  it('unawaited plain', async () => {
    runPlain = async ({ db }: any) => { void db.query(`insert into shop.accounts values (null, 1)`).catch(() => {}) }
    await bench.deliver(probe('pay', { id: 'e1', order: 'a' }), probe('plain', { id: 'e2' }))
    let err; try { await bench.work() } catch (e) { err = e }
    console.log('UNAWAITED plain', String(err), await states())
  })
  it('unawaited slow fine query: is it done before commit and is db closed', async () => {
    hooks.apply = async ({ db }) => { void db.query(`select pg_sleep(0.3)`).then(() => db.query(`insert into shop.accounts values ('late', 1)`)).catch((e: any) => console.log('late', e.code)) }
    await bench.deliver(probe('pay', { id: 'e1', order: 'a' }))
    let err; try { await bench.work() } catch (e) { err = e }
    console.log('SLOW unawaited', String(err), await states())
  })
  const sqls = ['do $$ begin commit; end $$', `select set_config('synchronous_commit','off',false)`, 'set role pg_monitor', 'set session authorization default', `set search_path = nowhere`, 'discard all', 'lock table hookledger.orders in access exclusive mode', 'rollback', '/* x */ commit', ' ; commit', 'call nothing()', 'savepoint a', 'select pg_sleep(20)', `select pg_terminate_backend(pg_backend_pid())`, `select repeat('x', 5000000)`, 'begin', 'COMMIT AND CHAIN', `prepare transaction 'x'`, 'set local transaction_read_only = on', `set transaction_isolation = 'serializable'`, 'set transaction read only', `delete from hookledger.inbox_batches`, `listen x`, `declare c cursor for select 1`, `copy shop.accounts to stdout`, `copy shop.accounts from stdin`, 'create temp table t (x int) on commit drop', '']
  for (const sql of sqls) for (const where of ['apply', 'plain']) it(`${where}: ${sql}`, async () => {
    hooks.apply = async ({ db, order }) => { if (order.id === 'bad') await db.query(sql) }
    runPlain = async ({ db }: any) => { await db.query(sql) }
    await bench.deliver(probe('pay', { id: 'e1', order: 'a' }), where === 'apply' ? probe('pay', { id: 'e2', order: 'bad' }) : probe('plain', { id: 'e2' }), probe('pay', { id: 'e3', order: 'c' }))
    let err; const t = Date.now(); try { await bench.work() } catch (e) { err = e }
    console.log('SQL', where, sql.slice(0, 60), '=>', String(err), Date.now() - t, JSON.stringify(await states()))
    // leak?
    const s = await Promise.all(Array.from({ length: 5 }, () => bench.pool.query(`select current_setting('synchronous_commit') sc, current_user cu, current_setting('search_path') sp, current_setting('transaction_read_only') ro, pg_sleep(0.05)`)))
    const d = new Set(s.map((r) => JSON.stringify([r.rows[0].sc, r.rows[0].cu, r.rows[0].sp, r.rows[0].ro])))
    if (d.size > 1) console.log('   LEAK', [...d])
    for (const c of (bench.pool as any)._idle.slice()) { try { await bench.pool.query('select 1') } catch {} }
    hooks.apply = undefined as never; delete hooks.apply
    expect(true).toBe(true)
  }, 60000)
})
