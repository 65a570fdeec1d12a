/** What somebody must do to break what the audit watches of answers and of those who wait for them. */
import type { LedgerFixture } from './ledger-fixture.ts'

interface Setting {
  readonly fixture: LedgerFixture
  readonly unguarded: (...statements: string[]) => Promise<void>
}

/** An order that was looked at: an answer, and the decision made from it. */
async function looked(fixture: LedgerFixture): Promise<string> {
  const event = await fixture.event({ id: 'evt_look', type: 'look' })
  await fixture.sql(
    `insert into hookledger.looked_at (order_id, source_id, kind, object_id, workflow, sent, answered)
     values ('1001', 1, 'plan', 'p1', 'license', 1, 1)`,
  )
  await fixture.sql(
    `insert into hookledger.evidence (order_id, source_id, kind, object_id, number, workflow, is_found, requested_at, body_sha256, body_bytes, body)
     values ('1001', 1, 'plan', 'p1', 1, 'license', true, now(), sha256('{"value":1}'), 11, '{"value":1}')`,
  )
  const [answer] = await fixture.sql<{ id: string; sha256: string }>(
    `select evidence_id::text as id, encode(body_sha256, 'hex') as sha256 from hookledger.evidence`,
  )
  const fetch = {
    about: 'plan p1',
    number: '1',
    evidence: answer?.id,
    fetched_at: '2026-01-01T00:00:00.000Z',
    sha256: answer?.sha256,
  }
  const decision = await fixture.decide({
    event,
    kind: 'absorbed',
    order: '1001',
    from: 'paid',
    to: 'paid',
    evidence: { fetch },
  })
  await fixture.sql(
    `update hookledger.looked_at set applied = 1, applied_by = ${decision}, evidence_id = ${answer?.id}`,
  )
  return decision
}

/** An event that waits for an answer, with its request. */
export async function waitsForAnswer({ fixture }: Pick<Setting, 'fixture'>): Promise<void> {
  const event = await fixture.event({ id: 'evt_asks', type: 'look' })
  await fixture.sql(
    `insert into hookledger.inbox_gathers (event_key, received_on, order_id, source_id, kind, object_id, wanted, attempts)
     select event_key, (received_at at time zone 'UTC')::date, '1001', 1, 'plan', 'p2', 1, 0
     from hookledger.inbox_events where event_key = ${event}`,
  )
  await fixture.sql(
    `insert into hookledger.fetches (order_id, source_id, kind, object_id, workflow, event_type, event_key, wanted)
     values ('1001', 1, 'plan', 'p2', 'license', 'look', ${event}, 1)`,
  )
}

/** A history with a look in it, against which nothing is to be said. */
export const lookedHistory = looked

/** For every check of these, what breaks it. */
export const gatheredViolations: Readonly<Record<string, (setting: Setting) => Promise<void>>> = {
  waits_for_no_request: async ({ fixture, unguarded }) => {
    await waitsForAnswer({ fixture })
    await unguarded('update hookledger.inbox_gathers set wanted = 2')
  },
  request_without_finding: async ({ fixture, unguarded }) => {
    await waitsForAnswer({ fixture })
    await unguarded(`update hookledger.fetches set asked_at = now() - interval '2 days'`)
  },
  decision_without_evidence: async ({ fixture, unguarded }) => {
    await looked(fixture)
    await unguarded('update hookledger.evidence set number = 7')
  },
  look_unexplained: async ({ fixture, unguarded }) => {
    await looked(fixture)
    await unguarded('update hookledger.looked_at set applied_by = 0')
  },
  evidence_altered: async ({ fixture, unguarded }) => {
    await looked(fixture)
    await unguarded(`update hookledger.evidence set body = '{"value":2}'`)
  },
}
