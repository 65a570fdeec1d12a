/**
 * Workflows in memory: the engine that runs over PostgreSQL, without it. A test that passes here says
 * what the workflow decides; that it is decided once, whatever dies, is said by the database's tests.
 */
import { HookledgerError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'
import { freezeJson } from '../workflow/any-event.ts'
import type { Environment } from '../workflow/event.ts'
import { checkedOpening, type Opening, type OpeningAnswer } from '../workflow/opening.ts'
import type { LedgerEntitlement } from '../workflow/order.ts'
import { PlayRun, type PlayedFinding } from '../workflow/play.ts'
import type { PlayedOperation } from '../workflow/play-operations.ts'
import { playOutbox, type PlayDestinations } from '../workflow/play-outbox.ts'
import { createRegistry } from '../workflow/registry.ts'
import type { Workflow } from '../workflow/workflow.ts'
import { playProvider } from './play-provider.ts'
import { PlaySources, type Deliverable, type PlaySource } from './play-sources.ts'
import {
  inboxEntry,
  orderView,
  sentView,
  type InboxEntry,
  type PlayedOrder,
  type SentOperation,
} from './play-views.ts'

/** Options of {@link play}. */
export interface PlayOptions {
  /**
   * Configured sources (`{ stripe: stripe(…) }`), or only their accounts; default: those the workflows name.
   * Workflows that mirror or gather need what the provider answers: `{ stripe: { present: … } }`.
   */
  readonly sources?: Readonly<Record<string, PlaySource>> | undefined
  /** Events of the other one are ignored, as they are by a schema; `test`. */
  readonly environment?: Environment | undefined
  /** When it begins; 2026-01-01. Time stands still until `advance` moves it. */
  readonly now?: Date | undefined
  /** How entitlements of several orders combine, by name; `any`. */
  readonly entitlements?: Readonly<Record<string, 'any' | 'max' | 'sum'>> | undefined
  /** How long a wait lasts where nothing else is said, in milliseconds; 24 hours. */
  readonly deferralMs?: number | undefined
  /** Configured destinations (`{ email: http(…) }`), called by nobody here; default: any name, bodies as JSON. */
  readonly destinations?: PlayDestinations | undefined
}

/** What the app opens an order with. */
export interface PlayOpening extends Opening {
  /** The name of its workflow; needed only where there are several. */
  readonly workflow?: string | undefined
}

/** What the app links a customer with. */
export interface PlayLink {
  /** The provider's id of the customer. */
  readonly customer: string
  readonly subject: string
  /** The name of the source; default: the first of the first workflow. */
  readonly source?: string | undefined
  /** The provider account that the customer belongs to; default: the source's own. */
  readonly account?: string | undefined
  /** Links one anew that is linked with another subject. */
  readonly replace?: boolean | undefined
}

/** What a subject may use now. */
export interface CurrentEntitlement {
  readonly entitlement: string
  readonly quantity: number
  readonly validUntil: Date | null
}

/** Workflows that run in memory. */
export interface Play {
  /** Opens an order as the app does in its checkout. */
  open(opening: PlayOpening): OpeningAnswer
  /**
   * Delivers an event; a list is one batch. Works until nothing is left to do, and says what became of
   * each. The source is the first of the first workflow that handles the type, unless it is named.
   */
  deliver(
    events: Deliverable | readonly Deliverable[],
    options?: { readonly source?: string | undefined },
  ): readonly InboxEntry[]
  /**
   * Links the provider's customer with a subject, as the app does; what waited for it is decided.
   *
   * @throws HookledgerError HKL_SUBJECT_LINKED for one that is linked with another subject
   */
  linkCustomer(link: PlayLink): 'linked' | 'existed'
  /** @throws HookledgerError HKL_NOT_FOUND, telling what there is instead. */
  order(id: string): PlayedOrder
  /** Every order that was opened. */
  orders(): readonly PlayedOrder[]
  /** What the subject may use now, over all its orders. */
  entitlements(subject: string): readonly CurrentEntitlement[]
  /** Every event, in order of arrival. */
  inbox(): readonly InboxEntry[]
  /** Every finding. */
  findings(): readonly PlayedFinding[]
  /** What was sent or would be sent now, of all orders or of one: not what its order's state has canceled. */
  sent(orderId?: string): readonly SentOperation[]
  /**
   * Answers an operation as its destination would: it is sent, and what waited for it is decided. A second
   * answer changes nothing.
   *
   * @throws HookledgerError HKL_NOT_FOUND for one that would not be sent
   */
  answer(operationId: string, receipt?: Readonly<Record<string, unknown>>): void
  /** Lets time pass: waits whose deadline it passes end as their type says. */
  advance(ms: number): void
}

/**
 * Runs workflows in memory.
 *
 * @example
 * const app = play([license])
 * app.deliver(checkoutSessionCompleted({ order: '1001' }))
 * assert.equal(app.order('1001').state, 'paid')
 */
export function play(workflows: readonly Workflow[], options: PlayOptions = {}): Play {
  const environment = options.environment ?? 'test'
  const deferralMs = options.deferralMs ?? 86_400_000
  const registry = createRegistry(workflows, [])
  requireDestinations(options.destinations)
  const outbox = playOutbox(options.destinations)
  const provider = playProvider(options.sources)
  const run = new PlayRun({ registry, environment, deferralMs, outbox, provider })
  const sources = new PlaySources(workflows, options.sources, environment)
  let now = options.now ?? new Date('2026-01-01T00:00:00Z')
  let arrived = 0n
  return {
    open: ({ workflow, ...opening }) =>
      run.open(workflowOf(workflows, workflow), checkedOpening(opening), now),
    deliver(events, { source } = {}) {
      const list: readonly Deliverable[] = isList(events) ? events : [events]
      const batch = list.map((each) =>
        sources.eventOf(each, { key: ++arrived, receivedAt: now, source }),
      )
      return run.deliver(batch, now).map(inboxEntry)
    },
    linkCustomer({ customer, subject, source, account, replace = false }) {
      const name = source ?? workflows[0]?.sources[0] ?? ''
      const key = { sourceId: sources.sourceId(name, account), id: customer }
      const before = run.linked(key)
      if (before === subject) return 'existed'
      if (before !== null && !replace) {
        throw new HookledgerError(
          'HKL_SUBJECT_LINKED',
          `customer ${customer} is linked with ${before}: replace: true links it with ${subject}`,
        )
      }
      run.link(key, subject, now)
      return 'linked'
    },
    order(id) {
      const ledger = run.orders.get(id)
      if (ledger === undefined) throw new HookledgerError('HKL_NOT_FOUND', whatThereIs(run, id))
      return orderView(run, ledger)
    },
    orders: () => [...run.orders.values()].map((ledger) => orderView(run, ledger)),
    entitlements: (subject) =>
      currentEntitlements(
        [...run.orders.values()].flatMap((ledger) => ledger.entitlements),
        { subject, now, rules: options.entitlements ?? {} },
      ),
    inbox: () => run.events.map(inboxEntry),
    findings: () => run.findings,
    sent: (orderId) => run.operations.flatMap((each) => sentView(each, orderId)),
    answer(operationId, receipt = {}) {
      const found = run.operations.find((each) => each.draft.operationId === operationId)
      if (found === undefined || (found.state === 'pending' && !found.holds))
        throw new HookledgerError('HKL_NOT_FOUND', whyNotSent(operationId, found))
      run.answer(operationId, freezeJson(structuredClone(receipt)), now)
    },
    advance(ms) {
      now = new Date(now.getTime() + ms)
      run.passDeadlines(now)
    },
  }
}

/** @throws HookledgerError HKL_CONFIG_INVALID naming the destination that could send nothing */
function requireDestinations(destinations: PlayDestinations | undefined): void {
  for (const [name, destination] of Object.entries(destinations ?? {})) {
    const { encode } = (destination ?? {}) as Partial<PlayDestinations[string]>
    if (typeof encode === 'function') continue
    throw new HookledgerError(
      'HKL_CONFIG_INVALID',
      `destination "${name}" has no encode function: use http(…), stripe(…) or one of your own, as configured; without destinations any name is one`,
    )
  }
}

function isList(events: Deliverable | readonly Deliverable[]): events is readonly Deliverable[] {
  return Array.isArray(events)
}

function workflowOf(workflows: readonly Workflow[], name: string | undefined): Workflow {
  const [only, ...others] = workflows
  if (name === undefined && only !== undefined && others.length === 0) return only
  const names = workflows.map((workflow) => workflow.name)
  if (name === undefined) {
    throw new HookledgerError(
      'HKL_CONFIG_UNKNOWN_NAME',
      `say whose order it is: workflow: ${names.map((each) => `'${each}'`).join(' or ')}`,
    )
  }
  const found = workflows.find((workflow) => workflow.name === name)
  if (found !== undefined) return found
  const near = nearest(name, names)
  const hint = near === null ? '' : `, did you mean "${near}"?`
  throw new HookledgerError('HKL_CONFIG_UNKNOWN_NAME', `no workflow is named "${name}"${hint}`)
}

/** Why a test may find no order: what the events that could have opened it came to. */
function whatThereIs(run: PlayRun, id: string): string {
  const orders = [...run.orders.keys()].map((each) => `"${each}"`).join(', ')
  const open = run.events.filter((each) => each.state !== 'processed').map(inboxEntry)
  const lines = open
    .slice(0, 10)
    .map((entry) => `\n  ${entry.eventType} ${entry.eventId} is ${entry.state}: ${entry.reason}`)
  return `no order "${id}" was opened; orders: ${orders === '' ? 'none' : orders}${lines.join('')}`
}

function whyNotSent(operationId: string, found: PlayedOperation | undefined): string {
  if (found === undefined) return `no operation has the id "${operationId}": take it from sent()`
  const states = found.draft.whileStates?.join(' or ') ?? ''
  return `operation ${found.draft.name} is sent only while its order is ${states}: it would be canceled now`
}

function currentEntitlements(
  rows: readonly LedgerEntitlement[],
  asked: {
    readonly subject: string
    readonly now: Date
    readonly rules: Readonly<Record<string, 'any' | 'max' | 'sum'>>
  },
): CurrentEntitlement[] {
  const current = new Map<string, CurrentEntitlement>()
  for (const { subject, entitlement, quantity, validUntil, active } of rows) {
    if (subject !== asked.subject || !active) continue
    if (validUntil !== null && validUntil <= asked.now) continue
    const other = current.get(entitlement)
    if (other === undefined) {
      current.set(entitlement, { entitlement, quantity, validUntil })
      continue
    }
    const sums = Object.hasOwn(asked.rules, entitlement) && asked.rules[entitlement] === 'sum'
    current.set(entitlement, {
      entitlement,
      quantity: sums ? other.quantity + quantity : Math.max(other.quantity, quantity),
      validUntil: later(other.validUntil, validUntil),
    })
  }
  return [...current.values()].sort((a, b) => (a.entitlement < b.entitlement ? -1 : 1))
}

function later(a: Date | null, b: Date | null): Date | null {
  if (a === null || b === null) return null
  return a > b ? a : b
}
