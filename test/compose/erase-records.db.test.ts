/** Erasure of what repairs, mirrors and reconciliation recorded: each promise holds as before, and work goes on. */
import { describe, expect, it } from 'vitest'
import { applyErasure } from '../../src/compose/erase.ts'
import type { Database } from '../../src/postgres/executor.ts'
import { audit, defaultAuditLimits } from '../../src/report/audit.ts'
import { createGatherBench } from '../support/gather-bench.ts'
import { createRepairBench } from '../support/repair-bench.ts'

const by = { reason: 'they asked for it', actor: 'dpo' }

async function broken(db: Database): Promise<unknown[]> {
  const report = await audit(db, { ...defaultAuditLimits, graceMs: 0 })
  return report.checks.filter((each) => !each.holds)
}

describe('erasing', () => {
  it('an order that a repair has mended leaves the repair, its plan and its decision, without the name', async () => {
    const bench = await createRepairBench()
    try {
      const payment = bench.provider.pay('r1', { email: 'r1@example.com' })
      const id = await bench.find({ kind: 'paid_there', order: 'r1', payment })
      await bench.repairs.apply(id, by, {})
      await bench.work()
      const subject = 'email:r1@example.com'
      const kept = `select repair_id, finding_id, order_id, decision_id, actor, applied_at, verified_at from repairs`
      const before = await bench.rows(kept)
      expect(before).toHaveLength(1)
      expect(await broken(bench.db)).toEqual([])
      await applyErasure(bench.db, { subject, also: ['r1@example.com'], confirm: subject, ...by })
      expect(await bench.rows(kept)).toEqual(before)
      const [left] = await bench.rows<{ texts: string }>(
        `select concat((select string_agg(r::text, '') from repairs r), (select string_agg(d::text, '') from ledger_decisions d),
          (select string_agg(e::text, '') from fulfillment_effects e), (select string_agg(o::text, '') from orders o),
          (select string_agg(f::text, '') from findings f), (select string_agg(a::text, '') from operator_acts a)) as texts`,
      )
      expect(left?.texts).toContain('erased:')
      expect(left?.texts).not.toContain('r1@example.com')
      expect(await broken(bench.db)).toEqual([])
    } finally {
      await bench.close()
    }
  })

  it('an order that follows an object leaves the hash of each answer, and the next look is decided', async () => {
    const bench = await createGatherBench()
    try {
      bench.provider.plans.set('p1', { status: 'active', seats: 2 })
      await bench.ask(bench.look('p1'))
      await bench.work()
      const [{ subject } = { subject: '' }] = await bench.rows<{ subject: string }>(
        'select subject from orders',
      )
      const hashes = 'select evidence_id, number, body_sha256 from evidence order by 1'
      const before = await bench.rows(hashes)
      expect(before).toHaveLength(1)
      const done = await applyErasure(bench.db, { subject, confirm: subject, ...by })
      expect(done).toMatchObject({ evidence: 1, bodies: 1 })
      expect(await bench.rows('select count(body)::int as bodies from evidence')).toEqual([
        { bodies: 0 },
      ])
      expect(await bench.rows(hashes)).toEqual(before)
      expect(await broken(bench.db)).toEqual([])
      bench.provider.plans.set('p1', { status: 'late' })
      await bench.ask(bench.look('p1'))
      await bench.work()
      expect(await bench.rows('select state from orders')).toEqual([{ state: 'late' }])
      expect(await bench.rows('select active from entitlements where active')).toEqual([])
      expect(await broken(bench.db)).toEqual([])
    } finally {
      await bench.close()
    }
  })
})
