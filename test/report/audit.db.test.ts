import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { audit, auditChecks, defaultAuditLimits } from '../../src/report/audit.ts'
import type { AuditReport } from '../../src/report/audit.ts'
import { doorsViolations, furtherDoorsViolations } from './doors-violations.ts'
import { gatheredViolations, lookedHistory, waitsForAnswer } from './gathered-violations.ts'
import { LedgerDatabase, type LedgerFixture } from './ledger-fixture.ts'
import { outboxHistory, type OutboxHistory } from './outbox-fixture.ts'
import { outboxViolations } from './outbox-violations.ts'
import { furtherViolations, reconciledViolations } from './reconciled-violations.ts'
import { subjectsViolations } from './subjects-violations.ts'
import { reconciledHistory, type ReconciledHistory } from './reconciliation-fixture.ts'

let database: LedgerDatabase
let fixture: LedgerFixture
let end: () => Promise<void>
let history: { paid: string; grant: string; refund: string }
let outbox: OutboxHistory
let reconciled: ReconciledHistory

beforeAll(async () => {
  database = await LedgerDatabase.create()
})

afterAll(() => database.drop())

beforeEach(async () => {
  ;({ fixture, end } = await database.trying())
  history = await fixture.cleanHistory()
  outbox = await outboxHistory(fixture)
  reconciled = await reconciledHistory(fixture)
})

afterEach(() => end())

/** Opens the gates that the schema keeps shut, as only its owner can. */
async function unguarded(...statements: string[]): Promise<void> {
  for (const statement of [
    'set local session_replication_role = replica',
    ...statements,
    'reset session_replication_role',
  ]) {
    await fixture.sql(statement)
  }
}

function broken(report: AuditReport): string[] {
  return report.checks.filter((each) => !each.holds).map((each) => each.check)
}

async function brokenNow(): Promise<string[]> {
  return broken(await audit(fixture.db))
}

/** For every check, what somebody must do to break what it watches. */
const violations: Record<string, () => Promise<void>> = {
  accepted_event_missing: () =>
    unguarded(
      `insert into hookledger.deliveries (source_id, event_id, body_sha256) values (1, 'evt_lost', '')`,
    ),
  event_stored_twice: () =>
    unguarded(
      `alter table hookledger.inbox_events drop constraint inbox_events_identity_key`,
      `insert into hookledger.inbox_events (source_id, event_id, event_type, body_sha256, body_bytes)
         select source_id, event_id, event_type, body_sha256, body_bytes from hookledger.inbox_events where event_id = 'evt_paid'`,
    ),
  unfinished_without_body: async () => {
    await fixture.put(
      await fixture.event({ id: 'evt_new', type: 'refund.created', body: null }),
      'ready',
    )
  },
  body_altered: () =>
    unguarded(
      `update hookledger.payloads set body = body || '\\x00' where event_key = ${history.paid}`,
    ),
  effect_twice: () =>
    unguarded(
      `alter table hookledger.fulfillment_effects drop constraint fulfillment_effects_pkey`,
      `insert into hookledger.fulfillment_effects select * from hookledger.fulfillment_effects where effect_type = 'license'`,
    ),
  payment_twice: () =>
    unguarded(
      `alter table hookledger.ledger_payments drop constraint ledger_payments_pkey`,
      `insert into hookledger.ledger_payments select * from hookledger.ledger_payments`,
    ),
  decided_twice: () =>
    unguarded(
      `drop index hookledger.ledger_decisions_final_key`,
      `insert into hookledger.ledger_decisions (event_key, kind, final, reason, actor) values (${history.paid}, 'skipped', true, 'again', 'worker-1')`,
    ),
  order_twice: () =>
    unguarded(
      `alter table hookledger.orders drop constraint orders_pkey`,
      `insert into hookledger.orders select * from hookledger.orders`,
    ),
  name_twice: () =>
    unguarded(
      `alter table hookledger.order_names drop constraint order_names_pkey`,
      `insert into hookledger.order_names select * from hookledger.order_names`,
    ),
  unique_index_broken: () =>
    unguarded(
      `update pg_index set indisvalid = false where indexrelid = 'hookledger.fulfillment_effects_pkey'::regclass`,
    ),
  // as if it had been committed in a transaction of its own
  effect_without_decision: () =>
    unguarded(`update hookledger.fulfillment_effects set xid = '3' where effect_type = 'refund'`),
  decision_without_effect: () =>
    unguarded(`delete from hookledger.fulfillment_effects where effect_type = 'license'`),
  payment_without_decision: () =>
    unguarded(`update hookledger.ledger_payments set decision_id = decision_id + 1000`),
  order_missing: () => unguarded(`delete from hookledger.orders where order_id = '1001'`),
  finished_and_unfinished: () => fixture.put(history.paid, 'delayed'),
  entitled_without_state: () =>
    unguarded(`update hookledger.orders set state = 'refunded' where order_id = '1001'`),
  entitled_without_decision: () =>
    unguarded(`update hookledger.entitlements set granted_by = ${history.grant} + 1000`),
  grant_missing: () => unguarded(`delete from hookledger.entitlements`),
  entitlement_withheld: () => unguarded(`update hookledger.entitlements set active = false`),
  entitlement_change_unexplained: () =>
    unguarded(`update hookledger.entitlements set changed_by = 0`),
  constraint_broken: () =>
    unguarded(`alter table hookledger.entitlements drop constraint entitlements_granted_by_fkey`),
  event_in_no_state: async () => {
    await fixture.event({ id: 'evt_stray', type: 'refund.created' })
  },
  pending_too_long: async () => {
    const old = new Date(Date.now() - 2 * 86_400_000).toISOString()
    await fixture.put(
      await fixture.event({ id: 'evt_old', type: 'refund.created', receivedAt: old }),
      'ready',
    )
  },
  deadline_passed_unseen: async () => {
    const past = new Date(Date.now() - 3_600_000).toISOString()
    await fixture.put(await fixture.event({ id: 'evt_wait', type: 'refund.created' }), 'deferred', {
      deadline: past,
    })
  },
  overdue_without_finding: async () => {
    const past = new Date(Date.now() - 3_600_000).toISOString()
    await fixture.put(await fixture.event({ id: 'evt_wait', type: 'refund.created' }), 'deferred', {
      deadline: past,
    })
    await unguarded(`update hookledger.inbox_deferred set overdue = true`)
  },
  dead_without_finding: async () => {
    await fixture.put(await fixture.event({ id: 'evt_dead', type: 'refund.created' }), 'dead')
    await unguarded(
      `delete from hookledger.findings`,
      `update hookledger.inbox_dead set died_at = now() - interval '1 hour'`,
    )
  },
  waits_for_nothing: async () => {
    await fixture.put(await fixture.event({ id: 'evt_wait', type: 'refund.created' }), 'deferred')
    await unguarded(`delete from hookledger.inbox_waits`)
  },
  wake_up_lost: async () => {
    await fixture.put(await fixture.event({ id: 'evt_wait', type: 'refund.created' }), 'deferred')
    await fixture.name('payment_intent', 'pi_9', '1001')
    await unguarded(`update hookledger.inbox_deferred set deferred_at = now() - interval '1 hour'`)
  },
  finding_overdue: async () => {
    await fixture.finding({ kind: 'paid_twice', order: '1001', due: '-1 hour' })
  },
  decision_without_reason: () =>
    unguarded(
      `update hookledger.ledger_decisions set workflow_version = '' where decision_id = ${history.grant}`,
    ),
  order_unexplained: () =>
    unguarded(
      `update hookledger.orders set state = 'disputed' where order_id = '1001'`,
      `update hookledger.entitlements set active = false`,
    ),
  state_unexplained: async () => {
    await fixture.put(await fixture.event({ id: 'evt_ignored', type: 'plan.created' }), 'ignored')
    await unguarded(`delete from hookledger.ledger_decisions where kind = 'ignored'`)
  },
  append_only_disabled: () =>
    unguarded(
      `alter table hookledger.ledger_decisions disable trigger ledger_decisions_append_only`,
    ),
  ...Object.fromEntries(
    Object.entries(outboxViolations).map(([name, violate]) => [
      name,
      () => violate({ fixture, outbox, unguarded }),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(reconciledViolations).map(([name, violate]) => [
      name,
      () => violate({ fixture, reconciled, unguarded }),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(doorsViolations).map(([name, violate]) => [
      name,
      async () => void (await violate({ fixture })),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(gatheredViolations).map(([name, violate]) => [
      name,
      () => violate({ fixture, unguarded }),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(subjectsViolations).map(([name, violate]) => [
      name,
      async () => void (await violate({ fixture, unguarded })),
    ]),
  ),
}

describe('audit', () => {
  it('holds for a history without faults, whatever state its events are in', async () => {
    for (const state of ['ready', 'delayed', 'suspects', 'deferred', 'ignored', 'dead'] as const) {
      await fixture.put(await fixture.event({ id: `evt_${state}`, type: 'plan.updated' }), state)
    }
    await fixture.finding({ kind: 'paid_twice', order: '1001' })
    await waitsForAnswer({ fixture })
    await lookedHistory(fixture)
    const report = await audit(fixture.db)
    expect(report.checks.filter((each) => !each.holds)).toEqual([])
    expect(report.holds).toBe(true)
  })

  it('has a seeded violation for every check', () => {
    expect(Object.keys(violations).sort()).toEqual(auditChecks.map((check) => check.name).sort())
  })

  it.each(Object.keys(violations))('catches a violation of %s', async (name) => {
    await violations[name]?.()
    expect(await brokenNow()).toContain(name)
  })

  it.each(furtherViolations)('finds %s', async (_, check, violate) => {
    await violate({ fixture, reconciled, unguarded })
    expect(await brokenNow()).toEqual([check])
  })

  it.each(furtherDoorsViolations)('finds %s', async (_, check, violate) => {
    await violate({ fixture })
    expect(await brokenNow()).toEqual([check])
  })

  it('counts all violations and shows the first ten of them', async () => {
    await unguarded(
      `insert into hookledger.deliveries (source_id, event_id, body_sha256) select 1, 'evt_lost_' || n, '' from generate_series(10, 35) n`,
    )
    const report = await audit(fixture.db)
    const check = report.checks.find((each) => each.check === 'accepted_event_missing')
    expect(check?.violations).toBe(26)
    expect(check?.examples.map((each) => each.key)).toEqual(
      Array.from({ length: 10 }, (_, n) => `1/evt_lost_${n + 10}`),
    )
  })

  it('finds an entitlement that its decision did not grant, though it is of its order and entitles', async () => {
    await unguarded(`insert into hookledger.entitlements (order_id, subject, entitlement, active, granted_by, changed_by)
      select order_id, 'user:thief', entitlement, true, granted_by, changed_by from hookledger.entitlements`)
    expect(await brokenNow()).toEqual(['entitled_without_decision'])
  })

  it('finds a payment that its decision did not apply', async () => {
    await unguarded(`insert into hookledger.ledger_payments
      select source_id, 'pi_made_up', order_id, amount, currency, applied, decision_id from hookledger.ledger_payments`)
    expect(await brokenNow()).toEqual(['payment_without_decision'])
  })

  it('finds a duplicate that a corrupt unique index hides', async () => {
    // the index stays, the heap row does not enter it: as after a change of collation or a lost page
    await unguarded(
      `update pg_index set indisready = false, indislive = false where indexrelid = 'hookledger.fulfillment_effects_pkey'::regclass`,
      `insert into hookledger.fulfillment_effects select * from hookledger.fulfillment_effects where effect_type = 'license'`,
      `update pg_index set indisready = true, indislive = true where indexrelid = 'hookledger.fulfillment_effects_pkey'::regclass`,
    )
    expect(await brokenNow()).toContain('effect_twice')
  })

  it.each([
    [
      'back to where it was',
      [
        ['disputed', 'paid'],
        ['paid', 'disputed'],
        ['paid', 'refunded'],
      ],
    ],
    [
      'through every state',
      [
        ['refunded', 'disputed'],
        ['disputed', 'paid'],
        ['paid', 'refunded'],
      ],
    ],
  ] as const)(
    'follows an order %s, in whatever order its decisions were numbered',
    async (_, moves) => {
      for (const [index, [from, to]] of moves.entries()) {
        const event = await fixture.event({ id: `evt_move_${index}`, type: 'dispute' })
        const effects = [{ type: 'dispute', reference: String(index) }]
        await fixture.decide({ event, kind: 'moved', order: '1001', from, to, effects })
      }
      const last = moves[0][0] === 'refunded' ? 'paid' : 'refunded'
      await unguarded(
        `update hookledger.orders set state = '${last}'`,
        `update hookledger.entitlements set active = ${last === 'paid'}`,
      )
      expect(await brokenNow()).toEqual([])
      // one of the moves is not recorded after all
      await unguarded(
        `delete from hookledger.ledger_decisions where event_key = (select event_key from hookledger.inbox_events where event_id = 'evt_move_1')`,
      )
      expect(await brokenNow()).toContain('order_unexplained')
    },
  )

  it('starts the time of a pending event again when an operator puts it back', async () => {
    const old = new Date(Date.now() - 2 * 86_400_000).toISOString()
    const key = await fixture.event({ id: 'evt_old', type: 'refund.created', receivedAt: old })
    await fixture.put(key, 'ready')
    await fixture.sql(
      `insert into hookledger.operator_acts (act, target, reason, actor) values ('replay', 'event:${key}', 'fixed', 'ada')`,
    )
    expect(await brokenNow()).toEqual([])
  })

  it('says of a role that may not read bodies that they were not checked', async () => {
    await fixture.sql('create role hookledger_audit_test')
    await fixture.sql('grant usage on schema hookledger to hookledger_audit_test')
    await fixture.sql('grant select on all tables in schema hookledger to hookledger_audit_test')
    await fixture.sql(
      'revoke select on hookledger.payloads, hookledger.payloads_held from hookledger_audit_test',
    )
    await fixture.sql('set local role hookledger_audit_test')
    const report = await audit(fixture.db)
    const skipped = report.checks.filter((each) => each.skipped !== null).map((each) => each.check)
    expect(skipped).toEqual([
      'unfinished_without_body',
      'body_altered',
      'request_altered',
      'evidence_altered',
    ])
  })

  it('tells what a finding answers for as known, until that is overdue, closed, over, or about another order', async () => {
    await violations['order_unexplained']?.()
    const found = (order: string, dueHours: number): Promise<unknown> =>
      fixture.sql(
        `insert into hookledger.findings (finding_id, class, kind, severity, owner, order_id, evidence, due_at)
         values (gen_random_uuid(), 'contradiction', 'tampered', 'high', 'operations', $1, '{}', now() + $2 * interval '1 hour')`,
        [order, dueHours],
      )
    await found('1002', 72)
    expect(await brokenNow()).toContain('order_unexplained')
    await found('1001', 72)
    const report = await audit(fixture.db)
    expect(broken(report)).not.toContain('order_unexplained')
    expect(report.checks.find((each) => each.check === 'order_unexplained')).toMatchObject({
      holds: true,
      violations: 0,
      known: 1,
      examples: [],
    })
    // what is broken beside it is not hidden by it
    await violations['effect_twice']?.()
    expect(await brokenNow()).toContain('effect_twice')
    await fixture.sql(`update hookledger.findings set due_at = now() - interval '1 minute'`)
    expect(await brokenNow()).toContain('order_unexplained')
    await fixture.sql(
      `update hookledger.findings set due_at = now() + interval '1 day', state = 'closed', closed_at = now()`,
    )
    expect(await brokenNow()).toContain('order_unexplained')
    // somebody accepted it, for a time
    const dismiss = (until: string): Promise<unknown> =>
      fixture.sql(
        `update hookledger.findings set state = 'dismissed', dismissed_evidence = evidence, dismissed_until = now() + $1::interval`,
        [until],
      )
    await dismiss('1 day')
    expect(await brokenNow()).not.toContain('order_unexplained')
    await dismiss('-1 minute')
    expect(await brokenNow()).toContain('order_unexplained')
  })

  it('takes its limits from the configuration', async () => {
    const old = new Date(Date.now() - 2 * 86_400_000).toISOString()
    await fixture.put(
      await fixture.event({ id: 'evt_old', type: 'refund.created', receivedAt: old }),
      'ready',
    )
    expect(
      broken(await audit(fixture.db, { ...defaultAuditLimits, pendingMs: 3 * 86_400_000 })),
    ).toEqual([])
  })
})
