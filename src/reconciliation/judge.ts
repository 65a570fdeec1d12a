/**
 * Judges references of one source: asks for the record, and holds it against the ledger. Each is asked for at
 * most once a pass, and what it shows is kept until it is written.
 */
import { RecordsError, type ProviderRecord, type RecordReference } from '../workflow/records.ts'
import { accountSource, type AccountSource, type CompareContext } from './compare-context.ts'
import { inSlices } from './in-slices.ts'
import { judgeRecords, readPayments, type JudgedOne } from './judge-records.ts'
import type {
  CompareInput,
  ConfiguredSourceLike,
  Discrepancy,
  FetchRecord,
  Judgement,
} from './ports.ts'
import {
  namedRecords,
  unconfirmedPayments,
  unpaidOrders,
  withoutPayment,
  withoutRecord,
  type UnpaidOrder,
} from './unconfirmed.ts'
import { referenceKey, type SeenWindow } from './window-seen.ts'

/** So many records are judged at once. */
const atOnce = 100

/** Judges references of one source, each at most once a pass. */
export class Judge {
  /** What was found, by the finding's id. */
  readonly found: Map<string, Discrepancy> = new Map()
  judged = 0
  readonly #ctx: CompareContext
  readonly #source: ConfiguredSourceLike
  readonly #fetch: FetchRecord
  readonly #settledBefore: Date | null
  readonly #judgements = new Map<string, Judgement>()

  constructor(
    ctx: CompareContext,
    source: ConfiguredSourceLike,
    fetch: FetchRecord,
    settledBefore: Date | null,
  ) {
    this.#ctx = ctx
    this.#source = source
    this.#fetch = fetch
    this.#settledBefore = settledBefore
  }

  /** Records that disagreed before what was missing was put in: those that still do are asked for again. */
  async suspects(account: string, { seen }: { readonly seen: SeenWindow }): Promise<void> {
    const at = await accountSource(this.#ctx, this.#source, account)
    const suspects = seen.suspectsOf(account)
    const again: RecordReference[] = suspects.flatMap(({ record, reference }) =>
      record === null ? [reference] : [],
    )
    const whole = suspects.flatMap(({ record }) => record ?? [])
    for (const some of inSlices(whole, atOnce)) {
      const judged = await judgeRecords(this.#ctx, at, some, this.#settledBefore)
      for (const [index, { discrepancies }] of judged.entries()) {
        const record = some[index]
        if (discrepancies.length > 0 && record !== undefined)
          again.push({ kind: record.kind, id: record.id, account })
      }
      this.judged += some.length
    }
    for (const reference of again) await this.reference(reference)
  }

  /** What this database says was paid in the window, and no record confirmed. */
  async unconfirmed({ seen, localFrom, to }: CompareInput): Promise<void> {
    const accounts = new Map<number, AccountSource>()
    for (const at of await this.accounts()) accounts.set(at.sourceId, at)
    const ids = [...accounts.keys()]
    const window = { from: localFrom, to }
    const payments = await unconfirmedPayments(this.#ctx.db, ids, window, ({ sourceId, id }) =>
      seen.confirms(accounts.get(sourceId)?.account ?? '', id),
    )
    const { records } = this.#source.source
    // who lists events only may have nothing to ask for a payment, and its silence says nothing
    const listed = new Set(records?.kinds.map(({ kind }) => kind))
    for (const payment of payments) {
      const account = accounts.get(payment.sourceId)?.account ?? ''
      const reference = records?.referenceOf('payment', payment.id, account) ?? null
      if (reference !== null && listed.has(reference.kind)) await this.reference(reference)
    }
    for (const order of await unpaidOrders(this.#ctx, ids, window)) {
      const at = accounts.get(order.sourceId)
      if (at !== undefined) this.keep(await this.unpaidOrder(at, order))
    }
  }

  /** An order that entitles: does anything that its names stand for pay for it? */
  async unpaidOrder(at: AccountSource, order: UnpaidOrder): Promise<readonly Discrepancy[]> {
    const { db } = this.#ctx
    const said: string[] = []
    const asked = await namedRecords(db, db.schema, at, order.orderId)
    for (const reference of asked) {
      const { record, verdict } = await this.reference(reference)
      if (verdict === 'young') return []
      if (record === null) {
        said.push(`no ${reference.kind} ${reference.id}`)
        continue
      }
      const facts = at.source.source.records?.factsOf(record) ?? []
      const payments = facts.flatMap((fact) => (fact.fact === 'payment' ? [fact] : []))
      if (payments.length === 0 || payments.some(({ standing }) => standing === 'paid')) return []
      said.push(`${reference.kind} ${reference.id} ${payments[0]?.standing ?? ''}`)
    }
    const [first] = asked
    return first === undefined ? [] : [withoutPayment(at, order, first, said.join('; '))]
  }

  /** Asks for one record, and judges it. What it shows is kept, to be written. */
  async reference(reference: RecordReference): Promise<Judgement> {
    const key = referenceKey(reference)
    const known = this.#judgements.get(key)
    if (known !== undefined) return known
    const judgement = await this.#ask(reference)
    this.judged++
    this.#judgements.set(key, judgement)
    this.keep(judgement.discrepancies)
    return judgement
  }

  async #ask(reference: RecordReference): Promise<Judgement> {
    let record: ProviderRecord | null
    try {
      record = await this.#fetch(this.#source, reference)
    } catch (error) {
      // a connected account that took back its consent is no reason to give up all others
      const isRefused = error instanceof RecordsError && error.trouble === 'refused'
      if (!isRefused || reference.account === this.#source.account) throw error
      return { reference, record: null, verdict: 'young', discrepancies: [] }
    }
    return judgeFetched(this.#ctx, this.#source, reference, record, this.#settledBefore)
  }

  /** Keeps what was found, to be written. */
  keep(discrepancies: readonly Discrepancy[]): void {
    for (const each of discrepancies)
      this.found.set(this.#ctx.findings.id(each.draft.kind, each.source, each.draft.about), each)
  }

  /** The accounts of the source that anything is stored of. */
  async accounts(): Promise<AccountSource[]> {
    const { db } = this.#ctx
    const { source, account, environment } = this.#source
    const rows = await db.query<{ provider_account: string; source_id: number }>({
      text: `select provider_account, source_id from ${db.schema}sources where provider = $1 and environment = $2`,
      values: [source.provider, environment],
    })
    return rows
      .filter(({ provider_account: of }) => of === account || source.allowsAccount(of))
      .map((row) => ({
        source: this.#source,
        account: row.provider_account,
        sourceId: row.source_id,
        text: `${source.provider}:${row.provider_account}:${environment}`,
      }))
  }
}

/** Judges a record that was asked for; null: the provider says that there is none. */
export async function judgeFetched(
  ctx: CompareContext,
  source: ConfiguredSourceLike,
  reference: RecordReference,
  record: ProviderRecord | null,
  settledBefore: Date | null,
): Promise<Judgement> {
  const at = await accountSource(ctx, source, reference.account)
  if (record !== null) {
    const [judged] = await judgeRecords(ctx, at, [record], settledBefore)
    return judgementOf(reference, record, judged)
  }
  // what a mirror follows and is gone is for the next look to tell
  if (await isFollowed(ctx, at, reference))
    return { reference, record: null, verdict: 'young', discrepancies: [] }
  const payments = await readPayments(ctx.db.schema, ctx.db, at.sourceId, [reference.id])
  const discrepancies = [...payments.values()]
    .filter(({ applied, amount }) => applied && amount > 0n)
    .map((payment) => withoutRecord(at, { ...payment, sourceId: at.sourceId }, reference))
  const verdict = discrepancies.length === 0 ? 'agrees' : 'differs'
  return { reference, record: null, verdict, discrepancies }
}

/** Whether a mirror follows the record, and knows it still. */
async function isFollowed(
  { db }: CompareContext,
  { sourceId }: AccountSource,
  { kind, id }: RecordReference,
): Promise<boolean> {
  const rows = await db.query({
    text: `select 1 from ${db.schema}looked_at l
      where l.source_id = $1 and l.kind = $2 collate "C" and l.object_id = $3 collate "C"
        and not exists (select 1 from ${db.schema}evidence e
          where e.evidence_id = l.evidence_id and not e.is_found and l.applied = l.answered offset 0) limit 1`,
    values: [sourceId, kind, id],
  })
  return rows.length > 0
}

function judgementOf(
  reference: RecordReference,
  record: ProviderRecord,
  judged: JudgedOne | undefined,
): Judgement {
  const discrepancies = judged?.discrepancies ?? []
  const verdict =
    judged === undefined || judged.isYoung
      ? 'young'
      : discrepancies.length > 0
        ? 'differs'
        : 'agrees'
  return { reference, record, verdict, discrepancies }
}
