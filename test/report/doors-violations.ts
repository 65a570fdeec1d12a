/** For every check about the doors, what somebody must do to break what it watches. */
import type { LedgerFixture } from './ledger-fixture.ts'

/** What a violation works on. */
export interface BrokenDoors {
  readonly fixture: LedgerFixture
}

/** The violations, by the name of the check. */
export const doorsViolations: Readonly<Record<string, (broken: BrokenDoors) => Promise<unknown>>> =
  {
    entitled_in_shadow: ({ fixture }) =>
      fixture.sql(`insert into hookledger.shadow_workflows (workflow) values ('license')`),
    // a row that somebody wrote by hand, in the form of a grant
    grant_unrecorded: async ({ fixture }) => {
      await fixture.sql(
        `insert into hookledger.workflow_states (workflow, state, entitles) values ('grant', 'granted', true)`,
      )
      await fixture.sql(
        `insert into hookledger.orders (order_id, workflow, state) values ('grant_1', 'grant', 'granted')`,
      )
      await fixture.sql(
        `insert into hookledger.ledger_decisions (order_id, workflow, kind, final, to_state, entitles, reason, actor)
         values ('grant_1', 'grant', 'opened', false, 'granted', true, 'because I can', 'mallory')`,
      )
    },
    // a decision that somebody wrote by hand, in the form of a new one
    redecision_unrecorded: ({ fixture }) =>
      fixture.decide({
        event: null,
        kind: 'redecided',
        order: '1001',
        from: 'paid',
        to: 'paid',
      }),
  }

/** Further ways to break them, each with the only check that sees it. */
export const furtherDoorsViolations: readonly (readonly [
  what: string,
  check: string,
  violate: (broken: BrokenDoors) => Promise<unknown>,
])[] = [
  [
    'an adopted order whose file nobody is recorded to have adopted',
    'grant_unrecorded',
    ({ fixture }) =>
      fixture.decide({ event: null, kind: 'adopted', order: '1001', from: 'paid', to: 'paid' }),
  ],
  [
    'a new decision in the place of one that had changed something',
    'redecision_unrecorded',
    async ({ fixture }) => {
      await fixture.sql(
        `with redone as (
          insert into hookledger.ledger_decisions (order_id, workflow, kind, final, from_state, to_state, entitles, reason, actor, supersedes)
          select order_id, workflow, 'redecided', false, 'paid', 'paid', true, 'again', 'mallory', decision_id
          from hookledger.ledger_decisions where kind = 'fulfilled' limit 1 returning decision_id)
        insert into hookledger.operator_acts (act, target, reason, actor, details)
        select 'redecide', 'event:1', 'again', 'mallory', jsonb_build_object('decision', decision_id::text) from redone`,
      )
    },
  ],
]
