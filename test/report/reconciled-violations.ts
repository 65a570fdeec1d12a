/** For every check about reconciliation and repairs, what somebody must do to break what it watches. */
import type { LedgerFixture } from './ledger-fixture.ts'
import { recordRun, type ReconciledHistory } from './reconciliation-fixture.ts'

/** What a violation works on. */
export interface BrokenReconciliation {
  readonly fixture: LedgerFixture
  readonly reconciled: ReconciledHistory
  /** Runs statements with the gates open that the schema keeps shut. */
  readonly unguarded: (...statements: string[]) => Promise<void>
}

/** The violations, by the name of the check. */
export const reconciledViolations: Readonly<
  Record<string, (broken: BrokenReconciliation) => Promise<void>>
> = {
  checkpoint_ahead: ({ unguarded }) =>
    unguarded(
      `update hookledger.reconciliation_checkpoints set through = now() + interval '1 hour' where kind = 'event'`,
    ),
  // somebody moved it by hand, past what was never looked at
  checkpoint_unexplained: ({ unguarded }) =>
    unguarded(
      `update hookledger.reconciliation_checkpoints set through = clock_timestamp(), moved_at = clock_timestamp(), run_id = null where kind = 'event'`,
    ),
  repair_unrecorded: async ({ fixture }) => {
    const event = await fixture.event({ id: 'evt_by_hand', type: 'repair.paid_there' })
    await fixture.decide({ event, kind: 'repaired', order: '1001', from: 'paid', to: 'paid' })
  },
  repair_unexplained: ({ unguarded, reconciled }) =>
    unguarded(
      `delete from hookledger.operator_acts where target = 'finding:${reconciled.repaired}'`,
    ),
  repair_closed_unverified: ({ unguarded, reconciled }) =>
    unguarded(
      `update hookledger.repairs set verified_at = null, applied_at = now() - interval '2 hours'
         where repair_id = '${reconciled.repair}'`,
      `update hookledger.operator_acts set acted_at = now() - interval '2 hours'
         where target = 'finding:${reconciled.repaired}'`,
      `update hookledger.findings set closed_at = now() - interval '1 hour' where finding_id = '${reconciled.repaired}'`,
    ),
  dismissal_unexplained: ({ unguarded, reconciled }) =>
    unguarded(
      `delete from hookledger.operator_acts where target = 'finding:${reconciled.dismissed}'`,
    ),
}

/** Further ways to break them, each with the only check that sees it. */
export const furtherViolations: readonly (readonly [
  what: string,
  check: string,
  violate: (broken: BrokenReconciliation) => Promise<void>,
])[] = [
  [
    'a window by hand that moved a checkpoint',
    'checkpoint_unexplained',
    async ({ fixture, unguarded }) => {
      const run = await recordRun(fixture, { how: 'range', at: -10 })
      await unguarded(
        `update hookledger.reconciliation_checkpoints set run_id = '${run}' where kind = 'event'`,
      )
    },
  ],
  [
    'a window that ends in the future',
    'checkpoint_ahead',
    ({ unguarded }) =>
      unguarded(
        `update hookledger.reconciliation_checkpoints set window_to = now() + interval '1 hour' where kind = 'refund'`,
      ),
  ],
  [
    'a repair committed apart from its decision',
    'repair_unrecorded',
    ({ unguarded, reconciled }) =>
      unguarded(`update hookledger.repairs set xid = '3' where repair_id = '${reconciled.repair}'`),
  ],
  [
    'a repair whose decision somebody else made',
    'repair_unrecorded',
    ({ unguarded, reconciled }) =>
      unguarded(
        `update hookledger.ledger_decisions set actor = 'mallory' where decision_id = ${reconciled.decision}`,
      ),
  ],
  [
    'repairs that can be changed',
    'append_only_disabled',
    ({ unguarded }) =>
      unguarded(`alter table hookledger.repairs disable trigger repairs_append_only`),
  ],
  [
    'a repair whose act was recorded at another time',
    'repair_unexplained',
    ({ unguarded, reconciled }) =>
      unguarded(
        `update hookledger.operator_acts set acted_at = now() - interval '1 minute' where target = 'finding:${reconciled.repaired}'`,
      ),
  ],
]
