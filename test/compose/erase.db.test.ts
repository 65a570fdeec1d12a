/** Erasure on a real database: a canary stands wherever a subject can, and nowhere afterwards. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { applyErasure, planErasure, type ErasureReport } from '../../src/compose/erase.ts'
import { audit, defaultAuditLimits } from '../../src/report/audit.ts'
import { diagnoseSchema } from '../../src/postgres/schema-checks.ts'
import type { Decision } from '../../src/workflow/decision.ts'
import type { DecideInput } from '../../src/workflow/workflow.ts'
import { fulfill } from '../../src/workflow/decision.ts'
import { money } from 'hookledger'
import { busy, scripted } from '../support/scripted-destination.ts'
import { createProbe, probe, probeWorkflow, type Probe, type ProbeBody } from '../support/probe.ts'

const canary = 'canary.7f3a'
const ada = `user:${canary}`
const mail = `ada@${canary}.example`
const crm = scripted()

/** Pays, grants and sends, with the subject and an address wherever a workflow can put them. */
function decide({ event, order }: DecideInput): Decision | undefined {
  const body = event as unknown as ProbeBody & { readonly subject: string; readonly email: string }
  if (body.type !== 'pay') return undefined
  return fulfill({
    to: 'paid',
    payment: { id: `pay_${order.id}`, money: money(4900, 'usd') },
    effects: [
      {
        type: 'grant',
        data: { email: body.email, for: body.subject },
        send: [{ to: 'crm', body: { order: order.id, email: body.email } }],
      },
    ],
    subject: body.subject,
    entitle: [{ subject: body.subject, entitlement: 'pro' }],
    reason: `${body.subject} paid`,
    evidence: { email: body.email, nobody: 'user:4' },
  } as never) as Decision
}

let bench: Probe
beforeAll(async () => {
  bench = await createProbe({
    workflows: [probeWorkflow({ decide })],
    destinations: { crm },
  })
})
beforeEach(async () => {
  await bench.reset()
  crm.reset()
})
afterAll(() => bench.close())

const by = { reason: `ticket 12: ${ada} asked for it`, actor: 'dpo' }
const pay = (order: string, subject = ada, more: Partial<ProbeBody> = {}): ProbeBody =>
  probe('pay', { order, subject, email: mail, ...more })
const erase = (more: { readonly giveUp?: boolean } = {}): Promise<ErasureReport> =>
  applyErasure(bench.db, { subject: ada, also: [mail], confirm: ada, ...by, ...more })

/** `table.column` of everything in which the canary stands, in the clear or within bytes. */
async function standsIn(text = canary): Promise<string[]> {
  const columns = await bench.rows<{ name: string; column: string; type: string }>(
    `select c.oid::regclass::text as name, quote_ident(a.attname) as column, a.atttypid::regtype::text as type
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'hookledger'::regnamespace and c.relkind = 'r' order by 1, a.attnum`,
  )
  const checks = columns.map(({ name, column, type }) => {
    const holds =
      type === 'bytea'
        ? `position(convert_to($1, 'UTF8') in ${column}) > 0`
        : `position($1 in ${column}::text) > 0`
    return `select '${name}.${column}' as place where exists (select from ${name} where ${holds})`
  })
  const found = await bench.rows<{ place: string }>(checks.join(' union all '), [text])
  return found.map(({ place }) => place.replace('hookledger.', ''))
}

async function brokenPromises(): Promise<unknown[]> {
  const report = await audit(bench.db, { ...defaultAuditLimits, graceMs: 0 })
  return report.checks.filter((each) => !each.holds)
}

/** Everything of one customer: two orders, a merge, a link, a grant, a finding, readings. */
async function live(): Promise<void> {
  const { hookledger, rows } = bench
  crm.next({
    kind: 'sent',
    receipt: { to: mail },
    status: 200,
    answer: Buffer.from(`sent to ${mail}`),
  })
  await bench.deliver(pay('o1'), pay('o2', `${ada}-old`))
  await bench.deliver(probe('custom', { order: 'o9', subject: 'user:4', note: `from ${mail}` }))
  await bench.work()
  const tx = async (work: (client: never) => Promise<unknown>): Promise<void> => {
    const client = await bench.pool.connect()
    await client.query('begin')
    await work(client as never)
    await client.query('commit')
    client.release()
  }
  await tx((client) =>
    hookledger.linkCustomer(client, {
      source: 'probe',
      customer: 'cus_canary',
      subject: ada,
      ...by,
    }),
  )
  await tx((client) => hookledger.mergeSubjects(client, { from: `${ada}-old`, into: ada, ...by }))
  await tx((client) => hookledger.grant(client, { subject: ada, entitlements: ['extra'], ...by }))
  await bench.work()
  await rows(
    `insert into evidence (order_id, source_id, kind, object_id, number, workflow, is_found, is_late, requested_at, fetched_at,
       body_sha256, body_bytes, body)
     select 'o1', min(source_id), 'customer', 'cus_canary', 1, 'probe', true, true, now(), now(), sha256(b), length(b), b
     from sources, convert_to($1, 'UTF8') b group by b`,
    [JSON.stringify({ email: mail })],
  )
  await rows(`select read_payload((select min(event_key) from inbox_events), $1, 'ada')`, [
    by.reason,
  ])
  await rows(
    `with bulk as (
      insert into bulk_acts (bulk_id, act, filter, details, targets, reason, actor, needs_approval)
      values (gen_random_uuid(), 'replay', $1, '{}', 1, $2, 'ada', false) returning bulk_id)
    insert into bulk_items (bulk_id, number, target, was, state, message, answered_at)
    select bulk_id, 1, 'event:1', 'dead', 'failed', $2, now() from bulk`,
    [{ text: ada }, by.reason],
  )
  await rows(
    `insert into findings (finding_id, class, kind, severity, owner, order_id, evidence, due_at)
     values (gen_random_uuid(), 'lag', 'order_stuck', 'low', 'ops', 'o1', $1, now() + interval '1 day')`,
    [{ subject: ada, said: `for ${ada}, ${mail}`, amount: 42 }],
  )
}

describe('erasing a subject', () => {
  it('leaves no trace of it in any table, keeps ids, hashes and decisions, and the audit passes', async () => {
    await live()
    const kept = `select (select array_agg((event_id, body_sha256) order by event_key)::text from inbox_events) as events,
      (select array_agg((decision_id, order_id, kind, to_state) order by decision_id)::text from ledger_decisions) as decisions,
      (select array_agg((order_id, state) order by order_id)::text from orders) as orders,
      (select array_agg((operation_id, request_sha256, state) order by sequence)::text from outbox_operations) as operations`
    const before = await bench.rows(kept)
    expect((await standsIn()).map((place) => place.replace(/payloads_\d+/, 'payloads'))).toEqual(
      expect.arrayContaining([
        'payloads.body',
        'evidence.body',
        'outbox_requests.request',
        'outbox_answers.answer',
        'outbox_operations.receipt',
        'ledger_decisions.reason',
        'ledger_decisions.evidence',
        'fulfillment_effects.data',
        'orders.subject',
        'entitlements.subject',
        'customer_links.subject',
        'subject_merges.from_subject',
        'operator_acts.target',
        'operator_acts.reason',
        'operator_acts.details',
        'payload_reads.reason',
        'findings.evidence',
        'bulk_acts.reason',
        'bulk_acts.filter',
        'bulk_items.message',
      ]),
    )
    const plan = await planErasure(bench.db, { subject: ada, also: [mail] })
    expect(plan).toMatchObject({
      applied: false,
      subjects: [ada, `${ada}-old`],
      orders: 3,
      events: 3,
      bodies: 3,
      requests: 2,
      answers: 1,
      evidence: 1,
      unfinished: [],
      confirm: ada,
    })
    const done = await erase()
    expect(done).toMatchObject({ applied: true, bodies: 3, requests: 2 })
    expect(done.pseudonym).toMatch(/^erased:[0-9a-f-]{36}$/)
    expect(await standsIn()).toEqual([])
    expect(await bench.rows(kept)).toEqual(before)
    expect(await brokenPromises()).toEqual([])
    expect(await diagnoseSchema(bench.db)).toEqual([])
    expect(await bench.hookledger.entitlements(ada)).toEqual([])
    const [act] = await bench.rows(
      `select act, target, reason, actor from operator_acts where act_id = $1`,
      [done.act_id],
    )
    expect(act).toEqual({
      act: 'erase',
      target: `subject:${done.pseudonym}`,
      reason: `ticket 12: ${done.pseudonym} asked for it`,
      actor: 'dpo',
    })
  })

  it('leaves whoever is not meant as they were, a name that only begins alike among them', async () => {
    await bench.deliver(pay('o1'), pay('o2', `${ada}2`, { email: 'bob@example.org' }))
    await bench.work()
    await erase()
    expect((await bench.hookledger.entitlements(`${ada}2`)).length).toBe(1)
    const [body] = await bench.rows<{ bodies: string }>('select count(*) as bodies from payloads')
    expect(body).toEqual({ bodies: '1' })
    expect(await brokenPromises()).toEqual([])
  })

  it('knows a redelivery still, and keeps nothing of it in the clear', async () => {
    const event = pay('o1')
    await bench.deliver(event)
    await bench.work()
    await erase()
    await bench.deliver(event, { ...event, more: 'bytes' })
    await bench.work()
    expect(await standsIn()).toEqual([])
    expect(await bench.rows('select event_id, state, deliveries from webhook_inbox')).toEqual([
      { event_id: event.id, state: 'processed', deliveries: '3' },
    ])
    expect(await bench.rows('select count(*)::int as decisions from ledger_decisions')).toEqual([
      { decisions: 1 },
    ])
    expect(await brokenPromises()).toEqual([])
  })

  it('waits for whoever holds an order, and does nothing where that takes too long', async () => {
    await bench.deliver(pay('o1'))
    await bench.work()
    const holder = await bench.pool.connect()
    await holder.query(`begin; select from orders where order_id = 'o1' for update`)
    await expect(erase()).rejects.toMatchObject({ code: 'HKL_ERASE_UNFINISHED' })
    await holder.query('rollback')
    holder.release()
    expect(await bench.rows('select from erasures')).toEqual([])
  })

  it('writes nothing that an event names anew afterwards to what was erased, and can be done again', async () => {
    await bench.deliver(pay('o1'))
    await bench.work()
    const first = await erase()
    await bench.deliver(pay('o2'))
    await bench.work()
    const second = await erase()
    expect(second.orders).toBe(1)
    expect(second.pseudonym).not.toBe(first.pseudonym)
    expect(await standsIn()).toEqual([])
    expect(await brokenPromises()).toEqual([])
  })

  it('refuses while an event is pending, and changes nothing', async () => {
    await bench.deliver(pay('o1'))
    const before = await standsIn()
    await expect(erase()).rejects.toMatchObject({
      code: 'HKL_ERASE_UNFINISHED',
      message: expect.stringContaining('let a worker decide') as string,
    })
    expect(await standsIn()).toEqual(before)
    expect(await bench.rows('select from operator_acts')).toEqual([])
  })

  it('refuses while an operation is not finished', async () => {
    crm.otherwise(busy)
    await bench.deliver(pay('o1'))
    await bench.work()
    const plan = await planErasure(bench.db, { subject: ada })
    expect(plan.unfinished).toEqual([
      { kind: 'operation', id: expect.any(String) as string, state: 'pending', can_give_up: false },
    ])
    await expect(erase({ giveUp: true })).rejects.toMatchObject({ code: 'HKL_ERASE_UNFINISHED' })
  })

  it('gives up what is dead or waits where it is told to, with a decision that says why', async () => {
    await bench.deliver(pay('o1'))
    await bench.work()
    await bench.deliver(
      probe('after', { order: 'o1', needs: 'never', note: mail }),
      probe('custom', { waits: 'unknown-ref', note: mail }),
    )
    await bench.work()
    await expect(erase()).rejects.toMatchObject({
      message: expect.stringContaining('--give-up') as string,
    })
    await erase({ giveUp: true })
    expect(await standsIn()).toEqual([])
    expect(
      await bench.rows(
        `select e.event_type, e.state, d.kind, d.actor, d.final from webhook_inbox e
         join ledger_decisions d on d.event_key = e.event_key and d.kind = 'ignored' order by 1`,
      ),
    ).toEqual([
      { event_type: 'after', state: 'ignored', kind: 'ignored', actor: 'dpo', final: false },
      { event_type: 'custom', state: 'ignored', kind: 'ignored', actor: 'dpo', final: false },
    ])
    expect(await bench.rows('select from inbox_waits')).toEqual([])
    expect(await brokenPromises()).toEqual([])
  })

  it('leaves numbers and common words alone where the subject is one', async () => {
    await bench.deliver(pay('o1', '4900'))
    await bench.work()
    await applyErasure(bench.db, { subject: '4900', confirm: '4900', ...by })
    const [row] = await bench.rows<{ amount: string; evidence: unknown; subject: string }>(
      `select p.amount::text, d.evidence, o.subject from ledger_payments p
       join ledger_decisions d using (decision_id) join orders o on o.order_id = p.order_id`,
    )
    expect(row).toMatchObject({ amount: '4900', evidence: { email: mail } })
    expect(row?.subject).toMatch(/^erased:/)
    expect(JSON.stringify(row?.evidence)).toContain(`${row?.subject} pro`)
    expect(await brokenPromises()).toEqual([])
  })

  it('changes texts of append-only rows in its own transaction only, and nothing else ever', async () => {
    await live()
    await erase()
    for (const statement of [
      `update ledger_decisions set reason = 'other'`,
      `update operator_acts set actor = 'other'`,
      `update fulfillment_effects set data = null`,
      `delete from erasures`,
      `update erased_events set event_key = 0`,
    ])
      await expect(bench.rows(statement)).rejects.toMatchObject({ code: '42501' })
    // not even the owner within an erasure
    await expect(
      bench.rows(`with e as (insert into erasures (erasure_id, pseudonym, reason, actor)
          values (gen_random_uuid(), 'erased:x', 'r', 'a') returning 1)
        update ledger_decisions set to_state = 'refunded' where (select count(*) from e) = 1`),
    ).rejects.toMatchObject({ code: '42501' })
  })

  it('refuses what was not typed again, a subject that nothing knows, one that is another by now, and one that is gone', async () => {
    await live()
    await expect(
      applyErasure(bench.db, { subject: ada, confirm: 'user', ...by }),
    ).rejects.toMatchObject({ code: 'HKL_ERASE_INVALID' })
    await expect(planErasure(bench.db, { subject: 'user:nobody-here' })).rejects.toMatchObject({
      code: 'HKL_NOT_FOUND',
    })
    await expect(planErasure(bench.db, { subject: `${ada}-old` })).rejects.toMatchObject({
      code: 'HKL_ERASE_INVALID',
    })
    await expect(planErasure(bench.db, { subject: ada, also: ['ada'] })).rejects.toMatchObject({
      code: 'HKL_ERASE_INVALID',
    })
    const { pseudonym } = await erase()
    await expect(planErasure(bench.db, { subject: pseudonym ?? '' })).rejects.toMatchObject({
      code: 'HKL_ERASE_INVALID',
    })
    await expect(planErasure(bench.db, { subject: ada })).rejects.toMatchObject({
      code: 'HKL_NOT_FOUND',
    })
  })
})
