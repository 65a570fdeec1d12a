/**
 * Events of a provider's records, folded over the orders that they lead to: the same resolving and the same
 * fold as a worker's, and under the same locks where a repair is carried out. Nothing is written but the key
 * of an order that is opened.
 */
import { foldBatch, namesOf, settleAll, snapshotOf, type BoundNames } from '../inbox/plan-batch.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import type { Folded, FoldInput } from '../reconciliation/repair/ports.ts'
import { freezeJson } from '../workflow/any-event.ts'
import type { Environment, InboxEvent } from '../workflow/event.ts'
import { unopenedOrder } from '../workflow/opening.ts'
import { lookedObject } from '../workflow/looked-object.ts'
import type { Name, OrderLedger } from '../workflow/order.ts'
import { seenAnswer } from '../workflow/seen-answer.ts'
import type { OutboxPort } from '../workflow/outbox-port.ts'
import type { MadeEvent, ProviderRecord } from '../workflow/records.ts'
import { createRegistry, type Registry } from '../workflow/registry.ts'
import { resolveEvent, type Claim, type Resolved } from '../workflow/resolve-event.ts'
import type { Workflow } from '../workflow/workflow.ts'
import { customersFor } from './customers-for.ts'
import type { ConfiguredSource } from './options.ts'
import { sourceLookup } from './sources.ts'

/** What folding needs. */
export interface RepairFoldParts {
  readonly db: Database
  readonly ledger: Ledger
  /** Reads orders without locking them. */
  readonly readOrders: (
    tx: Executor,
    ids: readonly string[],
  ) => Promise<ReadonlyMap<string, OrderLedger>>
  readonly workflows: readonly Workflow[]
  readonly environment: Environment
  readonly sources: ReadonlyMap<string, ConfiguredSource>
  readonly outbox: OutboxPort
}

/** The fold of one configuration. */
export function createRepairFold(
  parts: RepairFoldParts,
): (tx: Executor, input: FoldInput) => Promise<Folded> {
  // plain handlers are no part of it: they act once, on the event itself
  const strict = createRegistry(parts.workflows, [])
  const lenient = createRegistry(parts.workflows.map(acceptingAll), [])
  return (tx, input) => fold(parts, input.lenient ? lenient : strict, tx, input)
}

/** The workflow with the checks of money and of transitions taken out: a person accepts what they refused. */
function acceptingAll(workflow: Workflow): Workflow {
  const states = [...workflow.states.keys()]
  return {
    ...workflow,
    compare: () => true,
    accepts: () => true,
    transitions: new Map(
      states.map((state) => [state, states.filter((each) => each !== state)] as const),
    ),
  }
}

async function fold(
  parts: RepairFoldParts,
  registry: Registry,
  tx: Executor,
  input: FoldInput,
): Promise<Folded> {
  const { ledger, environment } = parts
  const events = input.events.map((made, index) => inboxEvent(parts, input, made, index))
  const first = events.map((event) =>
    resolveEvent(event, { registry, environment, mayIgnore: true }),
  )
  const bound = await ledger.lookupNames(tx, namesOf(first))
  const { resolved, names } = settleAll(first, bound, (name) => ledger.nameKey(name))
  const only = input.fromNothing
  const { claims, ...apart } = await foldable(
    parts,
    tx,
    input,
    resolved.filter(
      (each): each is Claim =>
        each.kind === 'claim' && (only === undefined || each.orderId === only.id),
    ),
  )
  const { ledgers, held } =
    only === undefined
      ? await ledgersOf(parts, tx, claims, input.writes)
      : { ledgers: new Map([[only.id, emptied(only, parts.workflows)]]), held: [] }
  const before = new Map([...ledgers].map(([id, order]) => [id, snapshotOf(order)]))
  const said = tellings(resolved)
  const told = {
    ...said,
    ignored: [...said.ignored, ...apart.ignored],
    failures: [...said.failures, ...apart.failures],
  }
  if (held.length > 0) return { orders: [], held, ...told }
  const { outcomes, failures } = await foldClaims(parts, tx, input, { claims, ledgers, names })
  return {
    orders: [...ledgers].flatMap(([id, after]) => {
      const earlier = before.get(id)
      return earlier === undefined
        ? []
        : [
            {
              id,
              before: earlier,
              after,
              outcomes: outcomes.filter(({ orderId }) => orderId === null || orderId === id),
            },
          ]
    }),
    held: [],
    ...told,
    failures: [
      ...told.failures,
      ...failures.map(({ claim, error }) => `${claim.event.eventType}: ${messageOf(error)}`),
    ],
  }
}

/**
 * What a repair may decide of these claims. What needs an answer of the provider's does not belong here: a look,
 * or a gathering, is fenced and recorded, and a record that somebody read a moment ago is neither.
 */
async function foldable(
  { db }: RepairFoldParts,
  tx: Executor,
  { source, records, fromNothing }: FoldInput,
  claims: readonly Claim[],
): Promise<{ readonly claims: readonly Claim[] } & Pick<Folded, 'ignored' | 'failures'>> {
  const kept: Claim[] = []
  const ignored: string[] = []
  const failures: string[] = []
  for (const claim of claims) {
    const { handler } = claim.candidate
    const { eventType } = claim.event
    if (handler.gather !== undefined) {
      ignored.push(`${eventType} is decided from what is gathered for it: hookledger reconcile`)
    } else if (handler.mirror === undefined) {
      kept.push(claim)
    } else {
      try {
        const object = lookedObject(handler.mirror.object({ event: claim.body }))
        const record = fromNothing && records?.find(isOf(object, source.account))
        if (record === undefined)
          ignored.push(`${eventType} says "look again": hookledger reconcile`)
        else kept.push({ ...claim, inputs: { mirror: seenAnswer(object, record) } })
      } catch (error) {
        failures.push(`${eventType}: ${messageOf(error)}`)
      }
    }
  }
  const given = await customersFor(db, tx, kept)
  for (const { claim, error } of given.failures)
    failures.push(`${claim.event.eventType}: ${messageOf(error)}`)
  return { claims: given.claims, ignored, failures }
}

function isOf(object: Name, account: string): (record: ProviderRecord) => boolean {
  return ({ kind, id, account: of }) =>
    kind === object.kind && id === object.value && of === account
}

/** Made of a record as it is now: when it arrived would differ with every reading. */
function inboxEvent(
  { environment, sources }: RepairFoldParts,
  { source }: FoldInput,
  made: MadeEvent,
  index: number,
): InboxEvent {
  const { identity, accountAllowed } = sourceLookup(sources).identify(source)
  return {
    // no event of the inbox has such a number
    key: BigInt(-1 - index),
    sourceId: source.sourceId,
    source: { ...identity, environment },
    accountAllowed,
    eventId: made.eventId,
    eventType: made.eventType,
    receivedAt: made.occurredAt ?? new Date(0),
    occurredAt: made.occurredAt,
    synthetic: true,
    content: { readable: true, value: freezeJson(made.body) },
  }
}

async function ledgersOf(
  { ledger, readOrders }: RepairFoldParts,
  tx: Executor,
  claims: readonly Claim[],
  writes: boolean,
): Promise<{ readonly ledgers: Map<string, OrderLedger>; readonly held: readonly string[] }> {
  const openable = claims.flatMap(({ orderId, candidate: { workflow }, event }) =>
    event.accountAllowed && workflow.opens === 'event'
      ? [{ id: orderId, workflow: workflow.name, initial: workflow.initial }]
      : [],
  )
  const ids = claims.map((each) => each.orderId)
  const locked = writes
    ? await ledger.lockOrders(tx, ids, openable)
    : { ledgers: await readOrders(tx, ids), held: new Set<string>() }
  const ledgers = new Map(locked.ledgers)
  for (const { orderId, candidate } of claims)
    if (!ledgers.has(orderId)) ledgers.set(orderId, unopenedOrder(orderId, candidate.workflow))
  return { ledgers, held: [...locked.held] }
}

/** The order as it was opened, before anything of the provider's was known. */
function emptied(order: OrderLedger, workflows: readonly Workflow[]): OrderLedger {
  const workflow = workflows.find(({ name }) => name === order.workflow)
  return {
    ...order,
    state: workflow?.initial ?? order.state,
    payments: [],
    effects: [],
    entitlements: [],
    operations: [],
  }
}

async function foldClaims(
  { ledger, outbox }: RepairFoldParts,
  tx: Executor,
  { decisionId, fromNothing }: FoldInput,
  {
    claims,
    ledgers,
    names,
  }: {
    readonly claims: readonly Claim[]
    readonly ledgers: Map<string, OrderLedger>
    readonly names: BoundNames
  },
): Promise<ReturnType<typeof foldBatch>> {
  const input = {
    claims,
    names,
    nameKey: (name: Parameters<typeof ledger.nameKey>[0]) => ledger.nameKey(name),
    decisionId: () => decisionId,
    derive: (orderId: string, name: string) => ledger.derive(orderId, name),
    outbox,
  }
  if (fromNothing !== undefined) return foldBatch({ ...input, ledgers, payers: new Map() })
  // a first fold on copies tells which payments are named; their owners decide the second
  const copies = new Map([...ledgers].map(([id, order]) => [id, snapshotOf(order)]))
  const trial = foldBatch({ ...input, ledgers: copies, payers: new Map() })
  const named = trial.outcomes.flatMap(({ event, payment }) =>
    payment === null ? [] : [{ sourceId: event.sourceId, id: payment.id }],
  )
  return foldBatch({ ...input, ledgers, payers: await ledger.payers(tx, named) })
}

function tellings(resolved: readonly Resolved[]): Pick<Folded, 'loose' | 'ignored' | 'failures'> {
  const loose: string[] = []
  const ignored: string[] = []
  const failures: string[] = []
  for (const each of resolved) {
    const { eventType } = each.event
    if (each.kind === 'ignored') ignored.push(`${eventType} is ignored: ${each.reason}`)
    else if (each.kind === 'contradicted') loose.push(`${eventType} is ${each.reason}`)
    else if (each.kind === 'waiting') loose.push(`${eventType} names no order that is known here`)
    else if (each.kind === 'failed') failures.push(`${eventType}: ${messageOf(each.error)}`)
  }
  return { loose, ignored, failures }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'it failed without saying why'
}
