/**
 * The doors through which a person says what subjects are. Wired here, since ledger and inbox never import
 * one another.
 */
import { requireKnown } from './config-problem.ts'
import type { ResolvedConfig } from './options.ts'
import { HookledgerError } from '../core/errors.ts'
import { customerName } from '../inbox/customer-links.ts'
import { wakeParts } from '../inbox/outcome-parts.ts'
import { writeLink, type LinkContext } from '../ledger/link-customer.ts'
import { presentSubjects, writeMerge } from '../ledger/merge-subjects.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import {
  checkedLink,
  checkedMerge,
  type CustomerLink,
  type LinkAnswer,
  type MergeAnswer,
  type SubjectMerge,
} from '../workflow/subject-acts.ts'

/**
 * Links a provider's customer with a subject, in the transaction that `tx` is in; what waits for it is ready
 * once that commits.
 *
 * @throws HookledgerError HKL_SUBJECT_INVALID saying what is wrong, HKL_SUBJECT_LINKED where another subject is
 * linked, HKL_CONFIG_UNKNOWN_NAME for a source that is not configured
 */
export async function linkCustomer(
  { db, config }: { readonly db: Database; readonly config: ResolvedConfig },
  tx: Executor,
  request: CustomerLink,
): Promise<LinkAnswer> {
  const { source: name, account, ...link } = checkedLink(request)
  const configured = config.sources.get(name)
  if (configured === undefined) {
    requireKnown('source of the customer', name, config.sources.keys())
    throw new HookledgerError('HKL_CONFIG_UNKNOWN_NAME', `unknown source "${name}"`)
  }
  const { source, environment } = configured
  if (account !== undefined && account !== configured.account && !source.allowsAccount(account))
    throw new HookledgerError(
      'HKL_SUBJECT_INVALID',
      `account ${account} is not allowed by source "${name}": name one of its connectedAccounts`,
    )
  const context: LinkContext = {
    db,
    waitedAs: customerName,
    wake: (names) => wakeParts(db.schema, names),
  }
  const namespace = { provider: source.provider, account: account ?? configured.account }
  return writeLink(context, tx, { ...link, ...namespace, environment })
}

/**
 * Makes two subjects one, in the transaction that `tx` is in.
 *
 * @throws HookledgerError HKL_SUBJECT_INVALID saying what is wrong
 */
export async function mergeSubjects(
  db: Database,
  tx: Executor,
  request: SubjectMerge,
): Promise<MergeAnswer> {
  return writeMerge(db, tx, checkedMerge(request))
}

/** What a subject is now, for this transaction: itself, or what it was merged into. */
export async function subjectNow(db: Database, tx: Executor, subject: string): Promise<string> {
  return (await presentSubjects(db, tx, [subject])).get(subject) ?? subject
}
