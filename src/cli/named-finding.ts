/** The finding that a person names by its id or the beginning of it. */
import { HookledgerError } from '../core/errors.ts'
import type { Database } from '../postgres/executor.ts'
import { findFindings, type FindingView } from '../report/findings.ts'

/** Fewer characters are too likely to be those of another finding. */
const fewest = 6

/** @throws HookledgerError HKL_CLI_USAGE for too few characters: wrong use, whatever the database holds */
export function requireEnough(id: string): void {
  if (id.length >= fewest) return
  throw new HookledgerError(
    'HKL_CLI_USAGE',
    'the id of a finding must be at least its first six characters',
  )
}

/** @throws HookledgerError HKL_CLI_USAGE for too few characters, HKL_FINDING_UNKNOWN for none or several */
export async function requireFinding(db: Database, id: string): Promise<FindingView> {
  requireEnough(id)
  const found = await findFindings(db, id)
  const [finding] = found
  if (finding === undefined) {
    throw new HookledgerError(
      'HKL_FINDING_UNKNOWN',
      `no finding has an id that begins with ${JSON.stringify(id)}: see "hookledger findings list --state all"`,
    )
  }
  if (found.length > 1) {
    throw new HookledgerError(
      'HKL_FINDING_UNKNOWN',
      `${found.length} findings begin with ${id}: give more of the id`,
    )
  }
  return finding
}
