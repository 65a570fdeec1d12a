/**
 * Says which subject a provider's customer is, in the caller's transaction. The row that a waiting event wrote
 * is the one that is written here: whoever is second waits for the first, and sees it then.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { runParts, type WritePart } from '../postgres/write-parts.ts'
import type { CustomerLink, LinkAnswer } from '../workflow/subject-acts.ts'
import { presentSubjects } from './merge-subjects.ts'
import type { SourceName } from './names.ts'

/** What linking needs of the other parts. */
export interface LinkContext {
  readonly db: Database
  /** The name under which events wait for a customer. */
  readonly waitedAs: (customer: { readonly sourceId: number; readonly id: string }) => SourceName
  /** The inbox's part: wakes what waits for a name. */
  readonly wake: (names: readonly SourceName[]) => WritePart[]
}

/** A checked link, with the namespace of its customer. */
export interface CheckedLink extends Omit<CustomerLink, 'source' | 'account' | 'replace'> {
  readonly provider: string
  readonly account: string
  readonly environment: string
  readonly replace: boolean
}

/**
 * Links a customer in the transaction that `tx` is in, waiting for whoever links or awaits it.
 *
 * @throws HookledgerError HKL_SUBJECT_LINKED where it is linked with another subject and `replace` is false
 */
export async function writeLink(
  { db, waitedAs, wake }: LinkContext,
  tx: Executor,
  link: CheckedLink,
): Promise<LinkAnswer> {
  const s = db.schema
  const sourceId = await sourceOf(s, tx, link)
  // the lock: who waits for this customer has committed now, or does so after this transaction
  const [row] = await tx.query<{ subject: string | null }>({
    text: `insert into ${s}customer_links as l (source_id, customer_id) values ($1::integer, $2)
      on conflict (source_id, customer_id) do update set subject = l.subject returning subject`,
    values: [String(sourceId), link.customer],
  })
  const known = row?.subject ?? null
  if (known !== null) {
    const present = await presentSubjects(db, tx, [known, link.subject])
    if (present.get(known) === present.get(link.subject)) return 'existed'
    if (!link.replace)
      throw new HookledgerError(
        'HKL_SUBJECT_LINKED',
        `customer ${link.customer} is linked with ${present.get(known)}: merge the two subjects, or say that it is replaced (replace: true, --replace)`,
      )
  }
  const customer = { sourceId, id: link.customer }
  // a statement of its own: it sees the waits of whoever held the row before
  await runParts(tx, [linkedPart(s, sourceId, link, known), ...wake([waitedAs(customer)])])
  return 'linked'
}

async function sourceOf(s: string, tx: Executor, link: CheckedLink): Promise<number> {
  const values = [link.provider, link.account, link.environment]
  const read = {
    text: `select source_id from ${s}sources where provider = $1 and provider_account = $2 and environment = $3`,
    values,
  }
  const [known] = await tx.query<{ source_id: number }>(read)
  if (known !== undefined) return known.source_id
  await tx.query({
    text: `insert into ${s}sources (provider, provider_account, environment) values ($1, $2, $3)
      on conflict (provider, provider_account, environment) do nothing`,
    values,
  })
  // whoever inserted the same meanwhile has committed
  const [made] = await tx.query<{ source_id: number }>(read)
  if (made !== undefined) return made.source_id
  throw new HookledgerError(
    'HKL_SUBJECT_INVALID',
    'the source of the customer cannot be seen by this transaction: link it at READ COMMITTED',
  )
}

function linkedPart(
  s: string,
  sourceId: number,
  link: CheckedLink,
  known: string | null,
): WritePart {
  const details = {
    source: `${link.provider}:${link.account}:${link.environment}`,
    subject: link.subject,
    ...(known !== null && { before: known }),
  }
  return {
    name: 'linked',
    sql: `link_act as (
        insert into ${s}operator_acts (act, target, reason, actor, details)
        values ('customer link', 'customer:' || :2::text, :4, :5, :6::text::jsonb) returning act_id),
      linked as (
        update ${s}customer_links l set subject = :3, linked_at = clock_timestamp(), act_id = a.act_id
        from link_act a where l.source_id = :1::integer and l.customer_id = :2 returning 1)`,
    values: [
      String(sourceId),
      link.customer,
      link.subject,
      link.reason,
      link.actor,
      JSON.stringify(details),
    ],
    expected: 1,
  }
}
