/** Linked customers for claims that are decided without a worker: what a handler throws concerns its event alone. */
import { withCustomers } from '../inbox/answers.ts'
import { EventFailure } from '../inbox/batch-failure.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import type { FoldFailure } from '../workflow/fold.ts'
import type { Claim } from '../workflow/resolve-event.ts'

/** The claims with what their handlers' `customer` names; those whose `customer` threw apart. */
export async function customersFor(
  db: Database,
  tx: Executor,
  claims: readonly Claim[],
): Promise<{ readonly claims: readonly Claim[]; readonly failures: readonly FoldFailure[] }> {
  const failures: FoldFailure[] = []
  for (let left = claims; ;) {
    try {
      return { claims: await withCustomers(db, tx, left), failures }
    } catch (error) {
      const failed =
        error instanceof EventFailure
          ? left.find((each) => each.event.key === error.key)
          : undefined
      if (failed === undefined || !(error instanceof EventFailure)) throw error
      failures.push({ claim: failed, error: error.cause })
      left = left.filter((each) => each !== failed)
    }
  }
}
