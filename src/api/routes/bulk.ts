/**
 * Acts on many things at once: planned first, so that somebody sees how many and which; started by typing the
 * number; approved by a second person where the configuration asks for it; canceled at any moment.
 */
import { z } from 'zod'
import type { BulkWork } from '../../compose/bulk/bulk-acts.ts'
import {
  approveBulk,
  cancelBulk,
  planBulk,
  rejectBulk,
  startBulk,
} from '../../compose/bulk/bulk-life.ts'
import { wakeBulk } from '../../compose/bulk/bulk-run.ts'
import {
  listBulk,
  listBulkItems,
  readBulk,
  type BulkItemView,
  type BulkView,
} from '../../compose/bulk/bulk-views.ts'
import type { Database } from '../../postgres/executor.ts'
import { defineRoute, type ApiRoute } from '../route.ts'
import { idText, moment, pageOf, pageQuery } from '../schemas.ts'
import { by } from './acts.ts'

const at = z.iso.datetime({ offset: true }).nullable().default(null)
const named = idText.nullable().default(null)
/** Shorter than that of a single act: it stands in the record of every one. */
const reason = z.string().trim().min(3).max(1900)

const eventFilter = z.strictObject({
  states: z
    .array(z.enum(['dead', 'ignored', 'deferred', 'delayed']))
    .min(1)
    .max(4)
    .default(['dead']),
  types: z.array(idText).max(50).default([]),
  source: named,
  /** Received at this moment or later, and before that one. */
  from: at,
  to: at,
})

const operationFilter = z.strictObject({
  states: z
    .array(z.enum(['dead', 'uncertain']))
    .min(1)
    .max(2)
    .default(['dead']),
  destination: named,
  order_id: named,
  /** Recorded at this moment or later, and before that one. */
  from: at,
  to: at,
})

const findingFilter = z.strictObject({
  states: z
    .array(z.enum(['open', 'repairing', 'dismissed']))
    .min(1)
    .max(3)
    .default(['open']),
  kind: named,
  class: z.enum(['lag', 'contradiction']).nullable().default(null),
  owner: named,
  order_id: named,
  overdue: z.boolean().default(false),
})

/** Chosen by whoever asks, a new one for a new plan: what is asked twice is planned once. */
const common = { bulk_id: z.uuid(), reason }
const nothing = z.strictObject({}).default({})

const planBody = z.discriminatedUnion('act', [
  z.strictObject({ ...common, act: z.literal('replay'), filter: eventFilter, details: nothing }),
  z.strictObject({ ...common, act: z.literal('retry'), filter: operationFilter, details: nothing }),
  z.strictObject({
    ...common,
    act: z.literal('discard'),
    filter: operationFilter,
    details: nothing,
  }),
  z.strictObject({
    ...common,
    act: z.literal('assign'),
    filter: findingFilter,
    details: z.strictObject({ owner: z.string().trim().min(1).max(200) }),
  }),
  z.strictObject({
    ...common,
    act: z.literal('dismiss'),
    filter: findingFilter,
    details: z.strictObject({ until: z.iso.datetime({ offset: true }) }),
  }),
  z.strictObject({
    ...common,
    act: z.literal('repair'),
    filter: findingFilter,
    details: z.strictObject({
      /** Null: what each kind of finding suggests. */
      choice: z.enum(['provider', 'restore', 'accept', 'keep']).nullable().default(null),
    }),
  }),
])

const acts = z.enum(['replay', 'retry', 'discard', 'assign', 'dismiss', 'repair'])
const states = z.enum([
  'planned',
  'waiting_approval',
  'running',
  'done',
  'failed',
  'canceled',
  'rejected',
])
const itemStates = z.enum(['pending', 'done', 'unchanged', 'failed'])
const count = z.number().int()

const bulk = z.strictObject({
  bulk_id: z.string(),
  act: acts,
  filter: z.record(z.string(), z.unknown()),
  details: z.record(z.string(), z.unknown()),
  /** How many targets were planned: fixed from then on. */
  count,
  state: states,
  reason: z.string(),
  actor: z.string(),
  needs_approval: z.boolean(),
  planned_at: moment,
  started_at: moment.nullable(),
  approved_by: z.string().nullable(),
  approved_at: moment.nullable(),
  /** Who canceled or rejected it. */
  ended_by: z.string().nullable(),
  finished_at: moment.nullable(),
  done: count,
  /** So already, or in another state by now: left alone. */
  unchanged: count,
  failed: count,
  pending: count,
  /** What is to be typed to start or approve it. */
  confirm: z.string(),
})

const item = z.strictObject({
  number: count,
  target: z.string(),
  reference: z
    .strictObject({
      kind: z.enum(['order', 'event', 'operation', 'finding', 'subject', 'workflow']),
      id: z.string(),
    })
    .nullable(),
  title: z.string(),
  was: z.string(),
  state: itemStates,
  code: z.string().nullable(),
  message: z.string().nullable(),
  answered_at: moment.nullable(),
})

const bulkWithSample = bulk.extend({
  /** The first targets; all of them are listed below `/items`. */
  sample: z.array(item),
})

function bulkAnswer(view: BulkView): z.input<typeof bulk> {
  return {
    ...view,
    act: acts.parse(view.act),
    filter: { ...view.filter },
    details: { ...view.details },
  }
}

function itemAnswer({ reference, ...view }: BulkItemView): z.input<typeof item> {
  return { ...view, reference: reference === null ? null : { ...reference } }
}

const sampleSize = 20

async function withSample(db: Database, view: BulkView): Promise<z.input<typeof bulkWithSample>> {
  const { items } = await listBulkItems(db, view.bulk_id, { limit: sampleSize })
  return { ...bulkAnswer(view), sample: items.map(itemAnswer) }
}

const params = z.strictObject({ bulk_id: z.uuid() })
const confirm = z.string().max(512)

const reading: readonly ApiRoute[] = [
  defineRoute({
    method: 'GET',
    path: '/bulk',
    permission: 'read',
    summary: 'Bulk acts, the newest first.',
    shape: { query: pageQuery.extend({ state: states.optional() }), answer: pageOf(bulk) },
    handle: async ({ db }, { query }) => {
      const { items, next } = await listBulk(db, query)
      return { items: items.map(bulkAnswer), next }
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/bulk/{bulk_id}',
    permission: 'read',
    summary: 'One bulk act: what was planned, and how far it has come.',
    shape: { params, answer: bulkWithSample },
    handle: async ({ db, parts }, { params: { bulk_id: id } }) => {
      const view = await readBulk(db, id)
      // of a console inside an app nobody else would go on with what a killed process has left
      if (view.state === 'running') wakeBulk(parts)
      return withSample(db, view)
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/bulk/{bulk_id}/items',
    permission: 'read',
    summary: 'The targets of a bulk act, and what became of each.',
    shape: {
      params,
      query: pageQuery.extend({ state: itemStates.optional() }),
      answer: pageOf(item),
    },
    handle: async ({ db }, { params: { bulk_id: id }, query }) => {
      await readBulk(db, id)
      const { items, next } = await listBulkItems(db, id, query)
      return { items: items.map(itemAnswer), next }
    },
  }),
]

const acting: readonly ApiRoute[] = [
  defineRoute({
    method: 'POST',
    path: '/bulk',
    permission: 'operate',
    summary: 'Plans a bulk act: freezes what it is about, and does nothing of it.',
    shape: { body: planBody, answer: bulkWithSample },
    handle: async (context, { body }) => {
      const { bulk_id: bulkId, act, filter, details } = body
      const { bulkFrom } = context.parts.config.console.approval
      const request = {
        bulkId,
        work: { act, filter, details } as BulkWork,
        needsApproval: (targets: number) => bulkFrom !== null && targets >= bulkFrom,
      }
      return withSample(context.db, await planBulk(context.db, request, by(context, body)))
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/bulk/{bulk_id}/start',
    permission: 'operate',
    summary: 'Starts what oneself has planned; `confirm` is the number of targets.',
    shape: { params, body: z.strictObject({ reason, confirm }), answer: bulkWithSample },
    handle: async (context, { params: { bulk_id: id }, body }) => {
      const { db, parts } = context
      const typed = { ...by(context, body), confirm: body.confirm }
      const started = await startBulk(db, id, typed)
      if (started.state === 'running') wakeBulk(parts)
      return withSample(db, started)
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/bulk/{bulk_id}/approve',
    permission: 'approve',
    summary:
      "Approves somebody else's bulk act, which runs then; `confirm` is the number of targets.",
    shape: { params, body: z.strictObject({ reason, confirm }), answer: bulkWithSample },
    handle: async (context, { params: { bulk_id: id }, body }) => {
      const { db, parts } = context
      const typed = { ...by(context, body), confirm: body.confirm }
      const approved = await approveBulk(db, id, typed)
      wakeBulk(parts)
      return withSample(db, approved)
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/bulk/{bulk_id}/reject',
    permission: 'approve',
    summary: 'Rejects a bulk act that waits for approval.',
    shape: { params, body: z.strictObject({ reason }), answer: bulkWithSample },
    handle: async (context, { params: { bulk_id: id }, body }) =>
      withSample(context.db, await rejectBulk(context.db, id, by(context, body))),
  }),
  defineRoute({
    method: 'POST',
    path: '/bulk/{bulk_id}/cancel',
    permission: 'operate',
    summary: 'Cancels a bulk act: what is done stays done, what is left is not begun.',
    shape: { params, body: z.strictObject({ reason }), answer: bulkWithSample },
    handle: async (context, { params: { bulk_id: id }, body }) =>
      withSample(context.db, await cancelBulk(context.db, id, by(context, body))),
  }),
]

/** The routes. */
export const bulkRoutes: readonly ApiRoute[] = [...reading, ...acting]
