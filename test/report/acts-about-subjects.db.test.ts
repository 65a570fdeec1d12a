import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase } from '../../src/postgres/pool.ts'
import { actsAboutSubjects } from '../../src/report/acts-about-subjects.ts'
import { findSubject } from '../../src/report/find-subject.ts'
import { createExplainingPool } from '../support/captured-plans.ts'
import { createProbe, probe, type Probe } from '../support/probe.ts'
import { subjectWorkflow } from '../support/subject-workflow.ts'

let bench: Probe
beforeAll(async () => {
  bench = await createProbe({ workflows: [subjectWorkflow()] })
  await bench.deliver(probe('set', { order: 'o1', subject: 'user:0' }))
  await bench.work()
})
afterAll(() => bench.close())

describe('explain of a subject or a customer', () => {
  it('reads by indexes', async () => {
    await bench.rows(`insert into customer_links (source_id, customer_id, subject, act_id)
      select (select min(source_id) from sources), 'cus_' || n, 'user:' || n, 0 from generate_series(1, 20000) n`)
    await bench.rows(`insert into subject_merges (from_subject, into_subject, act_id)
      select 'user:' || n, 'user:' || n + 1, 0 from generate_series(1, 20000, 2) n`)
    await bench.rows(`insert into operator_acts (act, target, reason, actor, details)
      select 'customer link', 'customer:cus_' || n, 'checkout', 'app', '{"source": "s", "subject": "o"}' from generate_series(1, 20000) n`)
    for (const table of ['customer_links', 'subject_merges', 'operator_acts'])
      await bench.rows(`analyze ${table}`)
    const { pool, plans } = createExplainingPool(bench.database)
    const db = createDatabase(pool, 'hookledger')
    for (const [kind, id] of [
      ['subject', 'user:18'],
      ['subject', 'user:17'],
      ['customer', 'cus_17'],
    ] as const) {
      expect(await findSubject(db, id)).toMatchObject({ kind })
      const acts = await actsAboutSubjects(db, { kind, id })
      expect(acts.map(({ target }) => target)).toEqual(['customer:cus_17', 'customer:cus_18'])
    }
    const scanned = plans.flatMap(({ text, nodes }) =>
      nodes.filter(({ type }) => type === 'Seq Scan').map(({ table }) => ({ table, text })),
    )
    const large = ['customer_links', 'subject_merges', 'operator_acts']
    expect(plans.length).toBeGreaterThan(6)
    expect(scanned.filter(({ table }) => large.includes(table ?? ''))).toEqual([])
  })
})
