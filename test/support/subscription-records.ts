/**
 * The records of the provider in memory, for passes: subscriptions as they are, paid invoices and refunds with
 * the events that they led to. It has no event list: what was never delivered shows only in what is.
 */
import type {
  MadeEvent,
  ProviderRecord,
  RecordPage,
  RecordQuery,
  Records,
} from '../../src/workflow/records.ts'
import type { Life } from './subscription-living.ts'
import type { SubscriptionProvider } from './subscription-provider.ts'
import { accountOf, factEvent } from './subscription-world.ts'

/** What the records are made of; a test gives another world to the same records. */
export interface RecordsOf {
  readonly provider: SubscriptionProvider
  readonly lives: readonly Life[]
}

/** Creates records over whatever world `now` gives. */
export function subscriptionRecords(now: () => RecordsOf, own: string): Records {
  const all = (account: string, kind: string): ProviderRecord[] =>
    now().lives.flatMap((life) => {
      if ((life.account || own) !== account) return []
      if (kind !== 'subscription') return factRecords(life, kind, account)
      const object = now().provider.present(account, life.id)
      return object === null ? [] : [recordOf(kind, life.id, account, object.created, object)]
    })
  return {
    kinds: ['subscription', 'invoice', 'refund'].map((kind) => ({
      kind,
      holds: 'objects',
      reachMs: null,
    })),
    accounts: () =>
      Promise.resolve([...new Set([own, ...now().lives.map(({ account }) => account || own)])]),
    list: (query) => Promise.resolve(pageOf(all(query.account, query.kind), query)),
    fetch: ({ kind, id, account }) =>
      Promise.resolve(all(account, kind).find((each) => each.id === id) ?? null),
    eventsOf: (record) => madeEvents(record, own),
    factsOf: () => [],
    referenceOf: () => null,
    namedBy: ({ kind, value }, account) =>
      kind === 'subscription' ? { kind, id: value, account } : null,
  }
}

function recordOf(
  kind: string,
  id: string,
  account: string,
  created: number,
  object: object,
): ProviderRecord {
  const createdAt = new Date(created * 1000)
  return { kind, id, account, createdAt, object: object as Record<string, unknown> }
}

/** The events of facts are what their objects led to: the record carries its event. */
function factRecords(life: Life, kind: string, account: string): ProviderRecord[] {
  return life.steps.flatMap((step) =>
    step.facts.flatMap((fact) => {
      if ((kind === 'invoice') !== (fact.fact === 'paid')) return []
      const id = fact.fact === 'paid' ? fact.invoice : fact.refund
      const created = life.steps[0]?.object?.created ?? 0
      const body = factEvent(life, fact, {
        id: `object:${kind}:${id}`,
        created: created + step.tick,
        livemode: false,
        ...accountOf(life),
      })
      return [recordOf(kind, id, account, created + step.tick, { id, body })]
    }),
  )
}

function madeEvents(
  { kind, id, account, object, createdAt }: ProviderRecord,
  own: string,
): MadeEvent[] {
  const type =
    { subscription: 'customer.subscription.updated', invoice: 'invoice.paid' }[kind] ??
    'refund.created'
  const body =
    kind === 'subscription'
      ? {
          id: `object:${type}:${id}`,
          type,
          created: Math.floor(createdAt.getTime() / 1000),
          livemode: false,
          ...accountOf({ account: account === own ? '' : account }),
          data: { object },
        }
      : { ...(object['body'] as Record<string, unknown>), id: `object:${type}:${id}` }
  return [
    {
      eventId: `object:${type}:${id}`,
      eventType: type,
      occurredAt: createdAt,
      apiVersion: null,
      body,
    },
  ]
}

function pageOf(records: readonly ProviderRecord[], query: RecordQuery): RecordPage {
  const found = records
    .filter(({ createdAt }) => createdAt >= query.from && createdAt < query.to)
    .sort((a, b) => b.createdAt.getTime() - a.createdAt.getTime() || (a.id < b.id ? 1 : -1))
  const start = query.cursor === null ? 0 : found.findIndex(({ id }) => id === query.cursor) + 1
  const page = found.slice(start, start + (query.limit ?? 100))
  return {
    records: page,
    next: start + page.length < found.length ? (page.at(-1)?.id ?? null) : null,
  }
}
