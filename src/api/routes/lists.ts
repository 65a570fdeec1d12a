/** Everything that is listed: filters, keyset pages, and the same rows as CSV. */
import { z } from 'zod'
import { HookledgerError } from '../../core/errors.ts'
import type { Database } from '../../postgres/executor.ts'
import { listActs } from '../../report/lists/acts.ts'
import { listDeliveries } from '../../report/lists/deliveries.ts'
import { listEntitlements } from '../../report/lists/entitlements.ts'
import { eventStates } from '../../report/lists/event-keys.ts'
import { countEvents, listEvents } from '../../report/lists/events.ts'
import { listFindingPage } from '../../report/lists/findings.ts'
import type { Page } from '../../report/lists/keyset.ts'
import { listDecisions, listEffects, listPayments } from '../../report/lists/ledger.ts'
import { listOperationPage } from '../../report/lists/operations.ts'
import { listOrders } from '../../report/lists/orders.ts'
import { listRejections } from '../../report/lists/rejections.ts'
import { listRuns } from '../../report/lists/runs.ts'
import { search } from '../../report/lists/search.ts'
import { reconciliationStatus } from '../../report/reconciliation.ts'
import { csvOf } from '../csv.ts'
import { defineRoute, type ApiRoute } from '../route.ts'
import { pageOf, pageQuery } from '../schemas.ts'
import * as shapes from './list-shapes.ts'

const { flagFilter: flag, momentFilter: when, textFilter: text } = shapes

/** A list: its filters, its rows, and how a page of it is read. */
interface ListDefinition<Query extends z.ZodObject, Item extends z.ZodType> {
  readonly summary: string
  readonly query: Query
  readonly item: Item
  /** A page has the keys of `item`, in any mood about being read-only. */
  page(db: Database, query: z.output<Query>): Promise<Page<unknown>>
}

function list<Query extends z.ZodObject, Item extends z.ZodType>(
  definition: ListDefinition<Query, Item>,
): ListDefinition<z.ZodObject, z.ZodType> {
  return definition as unknown as ListDefinition<z.ZodObject, z.ZodType>
}

const operationStates = [
  'pending',
  'sending',
  'sent',
  'uncertain',
  'dead',
  'canceled',
  'discarded',
] as const

/** By name: the path of the list, and of its export. */
const lists: Readonly<Record<string, ListDefinition<z.ZodObject, z.ZodType>>> = {
  events: list({
    summary: 'The inbox: every event, once, the newest first.',
    query: pageQuery.extend({
      state: z.enum(eventStates).optional(),
      source: text,
      type: text,
      order_id: text,
      text,
      from: when,
      to: when,
    }),
    item: shapes.listedEvent,
    page: listEvents,
  }),
  deliveries: list({
    summary: 'Every request that was let in, also those that brought what was known.',
    query: pageQuery.extend({
      verdict: z.enum(['new', 'duplicate']).optional(),
      source: text,
      from: when,
      to: when,
    }),
    item: shapes.listedDelivery,
    page: listDeliveries,
  }),
  rejections: list({
    summary: 'Requests that were answered with an error and stored nothing, by the minute.',
    query: pageQuery.extend({ source: text, reason: text, from: when, to: when }),
    item: shapes.listedRejection,
    page: listRejections,
  }),
  orders: list({
    summary: 'Orders, those opened last first.',
    query: pageQuery.extend({
      workflow: text,
      state: text,
      subject: text,
      text,
      from: when,
      to: when,
    }),
    item: shapes.listedOrder,
    page: listOrders,
  }),
  decisions: list({
    summary: 'What was decided, with reasons, the newest first.',
    query: pageQuery.extend({ kind: text, order_id: text, workflow: text }),
    item: shapes.listedDecision,
    page: listDecisions,
  }),
  effects: list({
    summary:
      'Effects: each once, with the decision that made it and how many later ones found it there.',
    query: pageQuery.extend({ order_id: text, type: text, reference: text }),
    item: shapes.listedEffect,
    page: listEffects,
  }),
  payments: list({
    summary: 'Payments, applied or contradicted.',
    query: pageQuery.extend({ order_id: text, applied: flag }),
    item: shapes.listedPayment,
    page: listPayments,
  }),
  entitlements: list({
    summary: 'Who may use what because of which order, by subject.',
    query: pageQuery.extend({ subject: text, entitlement: text, order_id: text, in_force: flag }),
    item: shapes.listedEntitlement,
    page: listEntitlements,
  }),
  operations: list({
    summary: 'The outbox: calls to the outside, the newest first.',
    query: pageQuery.extend({
      destination: text,
      state: z.enum(['unfinished', ...operationStates]).optional(),
      order_id: text,
    }),
    item: shapes.listedOperation,
    page: listOperationPage,
  }),
  findings: list({
    summary: 'Discrepancies: those that are open by when they are due.',
    query: pageQuery.extend({
      state: z.enum(['unfinished', 'open', 'repairing', 'closed', 'dismissed']).optional(),
      class: z.enum(['lag', 'contradiction']).optional(),
      kind: text,
      owner: text,
      order_id: text,
      overdue: flag,
    }),
    item: shapes.listedFinding,
    page: listFindingPage,
  }),
  runs: list({
    summary: "Passes over the providers' own records.",
    query: pageQuery.extend({ source: text, state: text }),
    item: shapes.listedRun,
    page: listRuns,
  }),
  acts: list({
    summary: 'What people did and looked at, by whom and why.',
    query: pageQuery.extend({ actor: text, act: text, target: text, from: when, to: when }),
    item: shapes.listedAct,
    page: listActs,
  }),
}

/** Rows of one export at most: more is a job for SQL. */
const mostExported = 10_000

async function exported(
  db: Database,
  definition: ListDefinition<z.ZodObject, z.ZodType>,
  query: Readonly<Record<string, unknown>>,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const rows: Readonly<Record<string, unknown>>[] = []
  let cursor: string | undefined
  do {
    const page = await definition.page(db, { ...query, limit: 200, cursor })
    rows.push(...(page.items as Readonly<Record<string, unknown>>[]))
    cursor = page.next ?? undefined
  } while (cursor !== undefined && rows.length < mostExported)
  return rows.slice(0, mostExported)
}

/** The columns of a list, in the order of its shape. */
function columnsOf({ item }: ListDefinition<z.ZodObject, z.ZodType>): readonly string[] {
  return Object.keys((item as z.ZodObject).shape)
}

/** The routes. */
export const listRoutes: readonly ApiRoute[] = [
  ...Object.entries(lists).map(([name, { summary, query, item, page }]) =>
    defineRoute({
      method: 'GET',
      path: `/${name}`,
      permission: 'read',
      summary,
      shape: { query, answer: pageOf(item) },
      handle: async ({ db }, { query: given }) => (await page(db, given)) as never,
    }),
  ),
  ...Object.entries(lists).map(([name, definition]) =>
    defineRoute({
      method: 'GET',
      path: `/export/${name}.csv`,
      permission: 'read',
      summary: `The same as CSV, up to ${mostExported} rows. ${definition.summary}`,
      answers: 'text/csv',
      shape: { query: definition.query.omit({ cursor: true, limit: true }), answer: z.string() },
      handle: async ({ db }, { query }) =>
        csvOf(name, columnsOf(definition), await exported(db, definition, query)),
    }),
  ),
  defineRoute({
    method: 'GET',
    path: '/events/counts',
    permission: 'read',
    summary: 'How many events are in each state.',
    shape: {
      answer: z.strictObject({
        counts: z.array(z.strictObject({ state: z.enum(eventStates), events: z.number().int() })),
      }),
    },
    handle: async ({ db }) => ({ counts: [...(await countEvents(db))] }),
  }),
  defineRoute({
    method: 'GET',
    path: '/checkpoints',
    permission: 'read',
    summary: "How far the providers' records have been looked at.",
    shape: { answer: z.strictObject({ items: z.array(shapes.checkpoint) }) },
    handle: async ({ db }) => ({ items: [...(await reconciliationStatus(db)).checkpoints] }),
  }),
  defineRoute({
    method: 'GET',
    path: '/search',
    permission: 'read',
    summary: 'What an id or a name of any kind leads to.',
    shape: {
      query: z.strictObject({ q: z.string().trim().min(1).max(512) }),
      answer: z.strictObject({ items: z.array(shapes.searchHit) }),
    },
    handle: async ({ db }, { query: { q } }) => {
      if (q.includes('\u0000'))
        throw new HookledgerError('HKL_API_INPUT_INVALID', 'q: no id contains NUL')
      return { items: [...(await search(db, q))] }
    },
  }),
]
