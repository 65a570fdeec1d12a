import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createProbe, probe, probeWorkflow, type Probe } from '../support/probe.ts'

let bench: Probe
let paid: string
let other: string
beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow()] })
  await bench.deliver(
    probe('pay', { order: 'paid' }),
    probe('pay', { order: 'other' }),
    probe('note', { order: 'unpaid' }),
  )
  await bench.work()
  const decision = async (order: string): Promise<string> =>
    (
      await bench.rows<{ id: string }>(
        `select decision_id as id from ledger_decisions where order_id = $1`,
        [order],
      )
    )[0]?.id ?? ''
  ;[paid, other] = [await decision('paid'), await decision('other')]
})
afterAll(() => bench.close())

/** The code and constraint of the error that the database answers with. */
async function refusal(text: string, values: unknown[] = []): Promise<unknown> {
  const client = await bench.pool.connect()
  try {
    await client.query('begin')
    await client.query(text, values)
    return 'accepted'
  } catch (error) {
    const { code, constraint } = error as { code?: string; constraint?: string }
    return constraint === undefined ? code : `${code} ${constraint}`
  } finally {
    await client.query('rollback')
    client.release()
  }
}

const entitlement = `insert into entitlements (order_id, subject, entitlement, active, granted_by, changed_by) values`

describe('an active entitlement', () => {
  it('names the decision of its own order that entitles', async () => {
    expect(await refusal(`${entitlement} ('paid', 'user:9', 'pro', true, $1, $1)`, [paid])).toBe(
      'accepted',
    )
  })

  it('is refused without a decision', async () => {
    expect(await refusal(`${entitlement} ('paid', 'user:9', 'pro', true, null, $1)`, [paid])).toBe(
      '23514 entitlements_active_check',
    )
  })

  it('is refused with the decision of another order, even one that entitles', async () => {
    expect(await refusal(`${entitlement} ('paid', 'user:9', 'pro', true, $1, $1)`, [other])).toBe(
      '23503 entitlements_granted_by_fkey',
    )
  })

  it('is refused with a decision that does not entitle, and with one that does not exist', async () => {
    const [row] = await bench.rows<{ id: string }>(
      `select decision_id as id from ledger_decisions where order_id = 'unpaid'`,
    )
    expect(
      await refusal(`${entitlement} ('unpaid', 'user:9', 'pro', true, $1, $1)`, [row?.id]),
    ).toBe('23503 entitlements_granted_by_fkey')
    expect(await refusal(`${entitlement} ('paid', 'user:9', 'pro', true, 999999, 999999)`)).toBe(
      '23503 entitlements_granted_by_fkey',
    )
  })

  it('is refused where it is not stated, and where it says that it need not be granted', async () => {
    expect(await refusal(`update entitlements set stated = false where order_id = 'paid'`)).toBe(
      '23514 entitlements_active_check',
    )
    expect(await refusal(`update entitlements set granting = false where order_id = 'paid'`)).toBe(
      '23514 entitlements_granting_check',
    )
  })

  it('is refused a quantity that is nothing', async () => {
    expect(await refusal(`update entitlements set quantity = 0 where order_id = 'paid'`)).toBe(
      '23514 entitlements_quantity_check',
    )
  })
})

describe('a decision', () => {
  const decision = (columns: string, values: string): string =>
    `insert into ledger_decisions (kind, final, reason, actor, ${columns}) values ('moved', false, 'because', 'test', ${values})`

  it('cannot claim that a state entitles which is registered as one that does not', async () => {
    expect(
      await refusal(
        decision('order_id, workflow, to_state, entitles', `'unpaid', 'probe', 'pending', true`),
      ),
    ).toBe('23503 ledger_decisions_state_fkey')
    expect(
      await refusal(
        decision('order_id, workflow, to_state, entitles', `'unpaid', 'probe', 'nowhere', true`),
      ),
    ).toBe('23503 ledger_decisions_state_fkey')
    expect(await refusal(`delete from workflow_states where state = 'paid'`)).toBe(
      '23503 ledger_decisions_state_fkey',
    )
    expect(await refusal(`update workflow_states set entitles = false where state = 'paid'`)).toBe(
      '23503 ledger_decisions_state_fkey',
    )
  })

  it('is final once for an event', async () => {
    expect(
      await refusal(
        `insert into ledger_decisions (event_key, kind, final, reason, actor) select event_key, 'skipped', true, 'again', 'test' from ledger_decisions where final limit 1`,
      ),
    ).toBe('23505 ledger_decisions_final_key')
  })

  it('says why and by whom, and is of a known kind', async () => {
    expect(
      await refusal(
        `insert into ledger_decisions (kind, final, reason, actor) values ('moved', false, '', 'test')`,
      ),
    ).toBe('23514 ledger_decisions_reason_check')
    expect(
      await refusal(
        `insert into ledger_decisions (kind, final, reason, actor) values ('moved', false, 'because', '')`,
      ),
    ).toBe('23514 ledger_decisions_actor_check')
    expect(
      await refusal(
        `insert into ledger_decisions (kind, final, reason, actor) values ('guessed', false, 'because', 'test')`,
      ),
    ).toBe('23514 ledger_decisions_kind_check')
  })
})

describe('what happened', () => {
  it.each(['ledger_decisions', 'fulfillment_effects', 'operator_acts', 'payload_reads'])(
    'can only be added to (%s), by the owner too',
    async (table) => {
      expect(
        await refusal(
          `update ${table} set ${table === 'ledger_decisions' || table === 'operator_acts' || table === 'payload_reads' ? 'reason' : 'effect_type'} = 'x'`,
        ),
      ).toBe('42501')
      expect(await refusal(`delete from ${table}`)).toBe('42501')
      expect(await refusal(`truncate ${table} cascade`)).toBe('42501')
    },
  )

  it('happens once: an effect, a payment, an order, a name, an event', async () => {
    expect(
      await refusal(
        `insert into fulfillment_effects (order_id, effect_type, decision_id) values ('paid', 'grant', $1)`,
        [paid],
      ),
    ).toBe('23505 fulfillment_effects_pkey')
    expect(await refusal(`insert into ledger_payments select * from ledger_payments limit 1`)).toBe(
      '23505 ledger_payments_pkey',
    )
    expect(await refusal(`insert into orders select * from orders limit 1`)).toBe(
      '23505 orders_pkey',
    )
    expect(
      await refusal(
        `insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes) select source_id, event_id, event_type, body_sha256, body_bytes from inbox_events limit 1`,
      ),
    ).toBe('23505 inbox_events_identity_key')
  })

  it('has sums of money that make sense', async () => {
    expect(await refusal(`update ledger_payments set amount = -1`)).toBe(
      '23514 ledger_payments_amount_check',
    )
    expect(await refusal(`update orders set expected_amount = 1, currency = null`)).toBe(
      '23514 orders_expected_check',
    )
    expect(
      await refusal(
        `insert into fulfillment_effects (order_id, effect_type, decision_id, amount) values ('paid', 'note', 1, 5)`,
      ),
    ).toBe('23514 fulfillment_effects_money_check')
  })
})

describe('the schema', () => {
  it('has a name of ours for every constraint and index, which errors and checks can rely on', async () => {
    const unnamed = await bench.rows(
      `select t.relname as table, c.conname as name from pg_constraint c join pg_class t on t.oid = c.conrelid
       where t.relnamespace = 'hookledger'::regnamespace and not t.relispartition and c.contype <> 'n'
         and c.conname not like t.relname || '%'
       union all
       select t.relname, i.relname from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
       where t.relnamespace = 'hookledger'::regnamespace and not t.relispartition and i.relname !~ '_(pkey|key|idx)$'`,
    )
    expect(unnamed).toEqual([])
  })

  it('compares every key of text byte by byte', async () => {
    const wrong = await bench.rows(
      `select t.relname as table, i.relname as index, a.attname as column from pg_index x
       join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
       cross join lateral unnest(x.indkey::smallint[], x.indcollation::oid[]) k(attnum, coll)
       join pg_attribute a on a.attrelid = t.oid and a.attnum = k.attnum
       where t.relnamespace = 'hookledger'::regnamespace and x.indisunique and k.coll <> 0 and k.coll <> 'pg_catalog."C"'::regcollation`,
    )
    // these hold words of ours, of a fixed alphabet
    expect(
      wrong.filter(
        ({ table }) => !['rejections', 'migrations', 'outbox_destinations'].includes(String(table)),
      ),
    ).toEqual([])
  })
})
