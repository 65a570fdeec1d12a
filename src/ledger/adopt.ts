/**
 * Adopts orders of an app that already lives: their facts are recorded as decisions of kind `adopted`, and
 * nothing is sent. Orders are locked like a worker's, names written before the one statement that writes
 * the rest; what is recorded already is left alone, so that a file can be adopted again.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { storable } from '../postgres/storable-text.ts'
import { runParts, type WritePart } from '../postgres/write-parts.ts'
import type { AdoptNamespace, OrderLine } from '../workflow/adopt-line.ts'
import {
  adoptOrder,
  type AdoptedOrder,
  type Adoption,
  type AdoptStanding,
} from '../workflow/adoption.ts'
import { unopenedOrder } from '../workflow/opening.ts'
import { adoptParts } from './adopt-parts.ts'
import type { Ledger } from './ledger.ts'
import { orderKind, type SourceName } from './names.ts'

/** What adopting needs of the other parts. */
export interface AdoptContext {
  readonly db: Database
  readonly ledger: Ledger
  /** The inbox's part: wakes what waits for names and orders. */
  readonly wake: (names: readonly SourceName[]) => WritePart[]
  readonly reason: string
  readonly actor: string
}

/** A line that cannot be adopted. */
export interface AdoptProblem {
  readonly line: number
  readonly message: string
}

/** What one batch came to. */
export interface AdoptedBatch {
  readonly adopted: number
  /** Recorded already, all of it. */
  readonly same: number
  /** Lines that say something else than events decided, whether anything of them was adopted or not. */
  readonly differing: readonly AdoptProblem[]
}

/** What lines come to, as things stand now. */
export interface AdoptOutlook {
  /** What speaks against adopting. */
  readonly problems: readonly AdoptProblem[]
  /** What the lines say otherwise, which would stay as it is. */
  readonly differing: readonly AdoptProblem[]
}

/** Thrown where somebody else holds orders of the batch: nothing was written, and it can be tried again. */
export class OrdersHeld extends Error {}

/**
 * What adopting these lines would come to, as things stand now. Writes nothing and waits for nobody.
 */
export async function adoptionProblems(
  { db, ledger }: Pick<AdoptContext, 'db' | 'ledger'>,
  lines: readonly OrderLine[],
): Promise<AdoptOutlook> {
  return db.transaction(async (tx) => {
    const { adoptions } = await adoptionsOf(db, tx, ledger, lines, { mayOpen: false })
    return { problems: problemsOf(adoptions), differing: differingOf(adoptions) }
  })
}

/**
 * Adopts lines in the transaction that `tx` is in.
 *
 * @throws OrdersHeld where somebody holds one of the orders; HookledgerError HKL_ADOPT_INVALID naming the line
 * that contradicts what was recorded meanwhile
 */
export async function adoptOrders(
  { db, ledger, wake, reason, actor }: AdoptContext,
  tx: Executor,
  lines: readonly OrderLine[],
): Promise<AdoptedBatch> {
  const { adoptions, held } = await adoptionsOf(db, tx, ledger, lines, { mayOpen: true })
  if (held > 0) throw new OrdersHeld(`${held} orders are held by other transactions`)
  const [problem] = problemsOf(adoptions)
  if (problem !== undefined) throw refused(problem.line, problem.message)
  const adopted = [...adoptions.values()].filter((each) => each.kind === 'adopted')
  const differing = differingOf(adoptions)
  const same = [...adoptions.values()].filter(
    (each) => each.kind === 'same' && each.differs === null,
  ).length
  if (adopted.length === 0) return { adopted: 0, same, differing }
  const names = await writeNames(ledger, tx, adopted)
  await runParts(tx, [...adoptParts(db.schema, adopted, { reason, actor }), ...wake(names)])
  return { adopted: adopted.length, same, differing }
}

function problemsOf(adoptions: ReadonlyMap<OrderLine, Adoption>): AdoptProblem[] {
  return [...adoptions].flatMap(([{ line }, adoption]) =>
    adoption.kind === 'conflict' ? [{ line, message: adoption.message }] : [],
  )
}

function differingOf(adoptions: ReadonlyMap<OrderLine, Adoption>): AdoptProblem[] {
  return [...adoptions].flatMap(([{ line }, adoption]) =>
    adoption.kind === 'conflict' || adoption.differs === null
      ? []
      : [{ line, message: adoption.differs }],
  )
}

/** Locks, reads and judges. Where nothing may be opened, an order that does not exist is one that will be. */
async function adoptionsOf(
  db: Database,
  tx: Executor,
  ledger: Ledger,
  lines: readonly OrderLine[],
  { mayOpen }: { readonly mayOpen: boolean },
): Promise<{ readonly adoptions: ReadonlyMap<OrderLine, Adoption>; readonly held: number }> {
  const sourceIds = await readSourceIds(db, tx, lines.flatMap(namespacesOf), mayOpen)
  const ids = lines.map(({ id }) => id)
  const openable = lines.map(({ id, workflow }) => ({
    id,
    workflow: workflow.name,
    initial: workflow.initial,
  }))
  const { ledgers, held } = await ledger.lockOrders(tx, ids, mayOpen ? openable : [])
  if (mayOpen && held.size > 0) return { adoptions: new Map(), held: held.size }
  const moved = await movedOrders(db, tx, ids)
  const decisionIds = mayOpen ? await newDecisionIds(db, tx, lines.length) : []
  const named = lines.flatMap((line) =>
    line.names.map((name) => ({ ...name, sourceId: sourceIds(name.source) })),
  )
  const bound = await ledger.lookupNames(tx, named)
  const paid = lines.flatMap((line) =>
    line.payments.map(({ id, source }) => ({ id, sourceId: sourceIds(source) })),
  )
  const payers = await ledger.payers(tx, paid)
  const adoptions = new Map<OrderLine, Adoption>()
  lines.forEach((line, index) => {
    // it exists in somebody's hands: what it is will be seen when it is written
    if (held.has(line.id)) return
    const standing: AdoptStanding = {
      isMoved: moved.has(line.id),
      states: moved.get(line.id) ?? new Set(),
      sourceIdOf: sourceIds,
      ownerOf: (sourceId, kind, value) =>
        bound.get(ledger.nameKey({ sourceId, kind, value }))?.orderId ?? null,
      payerOf: (sourceId, id) => payers.get(`${sourceId}\n${id}`) ?? null,
    }
    const order = ledgers.get(line.id) ?? unopenedOrder(line.id, line.workflow)
    if (!order.stored) fillNew(order, line, sourceIds)
    adoptions.set(line, adoptOrder(order, line, standing, decisionIds[index] ?? 0n))
  })
  return { adoptions, held: held.size }
}

/** What a new order is opened with. */
function fillNew(
  order: ReturnType<typeof unopenedOrder>,
  { subject, expected, account }: OrderLine,
  sourceIds: (namespace: AdoptNamespace) => number,
): void {
  order.subject = subject
  order.expected = expected
  order.sourceId = account === null ? null : sourceIds(account)
  order.provider = account?.provider ?? null
  order.providerAccount = account?.account ?? null
}

function namespacesOf(line: OrderLine): AdoptNamespace[] {
  const named = [...line.names, ...line.payments].map(({ source }) => source)
  return line.account === null ? named : [line.account, ...named]
}

/** The numbers of namespaces; those that nothing was ever recorded under are made, or are 0. */
export async function readSourceIds(
  db: Database,
  tx: Executor,
  namespaces: readonly AdoptNamespace[],
  makes: boolean,
): Promise<(namespace: AdoptNamespace) => number> {
  const key = ({ provider, account, environment }: AdoptNamespace): string =>
    JSON.stringify([provider, account, environment])
  const distinct = [...new Map(namespaces.map((each) => [key(each), each])).values()]
  const columns = [
    distinct.map((each) => each.provider),
    distinct.map((each) => each.account),
    distinct.map((each) => each.environment),
  ]
  if (makes && distinct.length > 0) {
    await tx.query({
      text: `insert into ${db.schema}sources (provider, provider_account, environment)
        select * from unnest($1::text[], $2::text[], $3::text[]) as n(provider, provider_account, environment)
        where not exists (select from ${db.schema}sources s where s.provider = n.provider
          and s.provider_account = n.provider_account and s.environment = n.environment)
        order by provider collate "C", provider_account collate "C", environment collate "C"
        on conflict (provider, provider_account, environment) do nothing`,
      values: columns,
    })
  }
  const rows = await tx.query<{
    source_id: number
    provider: string
    account: string
    environment: 'live' | 'test'
  }>({
    text: `select s.source_id, s.provider, s.provider_account as account, s.environment
      from unnest($1::text[], $2::text[], $3::text[]) as n(provider, provider_account, environment)
      join ${db.schema}sources s on s.provider = n.provider and s.provider_account = n.provider_account
        and s.environment = n.environment`,
    values: columns,
  })
  const ids = new Map(rows.map((row) => [key(row), row.source_id]))
  return (namespace) => ids.get(key(namespace)) ?? 0
}

/** Orders about which events, or people who mended something, have decided, each with its states so far. */
async function movedOrders(
  db: Database,
  tx: Executor,
  ids: readonly string[],
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const rows = await tx.query<{ order_id: string; states: string }>({
    text: `select k.order_id, (select coalesce(json_agg(distinct s.state), '[]') from ${db.schema}ledger_decisions d,
          lateral (values (d.from_state), (d.to_state)) as s(state)
        where d.order_id = k.order_id and s.state is not null)::text as states
      from unnest($1::text[]) as k(order_id)
      where exists (select from ${db.schema}ledger_decisions d where d.order_id = k.order_id
        and d.kind in ('fulfilled', 'moved', 'reversed', 'repaired', 'redecided'))`,
    values: [ids],
  })
  return new Map(
    rows.map((row) => [row.order_id, new Set(JSON.parse(row.states) as readonly string[])]),
  )
}

async function newDecisionIds(db: Database, tx: Executor, count: number): Promise<bigint[]> {
  const rows = await tx.query<{ id: string }>({
    text: `select nextval('${db.schema}ledger_decisions_decision_id_seq'::regclass)::text as id
      from generate_series(1, $1::integer)`,
    values: [count],
  })
  return rows.map((row) => BigInt(row.id))
}

/** Names of the orders, and the orders' own ids; answers what is to be woken. */
async function writeNames(
  ledger: Ledger,
  tx: Executor,
  adopted: readonly AdoptedOrder[],
): Promise<SourceName[]> {
  const writes = adopted.flatMap(({ line, names }) => [
    { sourceId: 0, kind: orderKind, value: line.id, orderId: line.id },
    ...names.map((name) => ({ ...name, orderId: line.id })),
  ])
  const [taken] = await ledger.writeNames(tx, writes)
  if (taken === undefined) return writes
  const of = adopted.find(({ names }) =>
    names.some((name) => ledger.nameKey(name) === ledger.nameKey(taken)),
  )
  throw refused(
    of?.line.line ?? 0,
    `${taken.kind} ${taken.value} is a name of order ${taken.orderId}`,
  )
}

/** The refusal of a line. */
export function refused(line: number, message: string): HookledgerError {
  return new HookledgerError('HKL_ADOPT_INVALID', storable(`line ${line}: ${message}`))
}
