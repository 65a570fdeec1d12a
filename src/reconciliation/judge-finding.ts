/** One finding by its id: do both sides agree about what it compares, now? A repair asks before it is called done. */
import type { CompareContext } from './compare-context.ts'
import { Judge } from './judge.ts'
import { checkOrders } from './local-checks/orders.ts'
import { findingOf } from './open-findings.ts'
import type { FetchRecord } from './ports.ts'
import { readOnlySetup } from './preview.ts'
import { recheckFinding } from './recheck-source.ts'

const ofOrders: readonly string[] = [
  'tampered',
  'entitlement_without_state',
  'effect_without_event',
  'order_stuck',
]

/** Null: this cannot be told, or not now. Writes nothing. */
export async function judgeFinding(
  ctx: CompareContext,
  id: string,
  fetch: FetchRecord,
): Promise<boolean | null> {
  const found = await findingOf(ctx.db, id)
  if (found === null) return null
  const { kind, orderId, sourceId } = found
  if (ofOrders.includes(kind)) {
    if (orderId === null) return null
    const still = await ctx.db.transaction((tx) => checkOrders(ctx, tx, [orderId]), {
      setup: readOnlySetup,
    })
    return !still.some(
      ({ draft, source }) => ctx.findings.id(draft.kind, source, draft.about) === id,
    )
  }
  const [row] = await ctx.db.query<{ provider: string; provider_account: string }>({
    text: `select provider, provider_account from ${ctx.db.schema}sources where source_id = $1`,
    values: [sourceId ?? 0],
  })
  const source = ctx.sources.find(
    ({ source: of, account }) =>
      of.records !== undefined &&
      of.provider === row?.provider &&
      (account === row.provider_account || of.allowsAccount(row.provider_account)),
  )
  if (source === undefined) return null
  const judge = new Judge(ctx, source, fetch, null)
  const at = (await judge.accounts()).find((each) => each.sourceId === sourceId)
  if (at === undefined) return null
  const verdict = await recheckFinding(ctx, judge, at, found)
  return verdict === 'unknown' ? null : verdict === 'agrees'
}
