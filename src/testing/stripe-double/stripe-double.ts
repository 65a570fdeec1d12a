/**
 * A simulated Stripe: one state machine of objects, of which events, lists and API answers are views.
 * It serves the API over HTTP, keeps itself on disk, continues after a kill with the same objects, and
 * says honestly what it saw and did.
 *
 * @module
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type Stripe from 'stripe'
import { ApiServer } from './api-server.ts'
import type { DoubleEndpoint } from './api-setup.ts'
import { Faults, type Fault, type FaultRule } from './faults.ts'
import type { ListLag } from './list-pages.ts'
import { eventRetentionMs, ObjectState } from './object-state.ts'
import { ProviderLog } from './provider-log.ts'
import { bindVerbs, type StripeVerbs } from './verbs.ts'

/** How the simulated provider is set up. */
export interface StripeDoubleOptions {
  /** The account that the API key belongs to; `acct_simulated` when absent. */
  account?: string
  /** Accounts that are connected to it from the start. */
  connectedAccounts?: readonly string[]
  /** The secret of the webhook endpoint, for whoever signs deliveries. */
  signingSecret: string
  /** Decides all ids; a new one when absent, so that ids never repeat over several data directories. */
  seed?: string
  /** Where objects and log are kept; in memory only when absent. One process at a time. */
  dataDir?: string
  /** Milliseconds since 1970; the machine's clock when absent. */
  clock?: () => number
  /** How late records show in lists, in milliseconds; at once when absent. */
  listLagMs?: ListLag
  /** The key that callers must present; any test key when absent. */
  apiKey?: string
  livemode?: boolean
  /** The endpoints that Stripe knows; one that is enabled for every type when absent. */
  webhookEndpoints?: readonly DoubleEndpoint[]
}

/** The simulated provider, with the verbs of its own account. */
export interface StripeDouble extends StripeVerbs {
  readonly signingSecret: string
  /** What it saw and did. */
  readonly log: ProviderLog
  /** The verbs of a connected account, which becomes known with this. */
  forAccount(account: string): StripeVerbs
  /** Answers an API request (`/v1/…`); the answer is complete when the promise resolves. */
  handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** Plants a fault into the API. */
  fault(rule: FaultRule): Fault
  /** Changes how late records show in lists, in milliseconds. */
  setListLag(lag: ListLag): void
  /** Changes which webhook endpoints Stripe knows. */
  setWebhookEndpoints(endpoints: readonly DoubleEndpoint[]): void
  /** Takes an object out, as when something is deleted while somebody pages through its list. */
  forget(id: string, account?: string): void
  /** Calls the listener for every event made from now on, except held ones. Returns what ends it. */
  onEvent(listener: (event: Stripe.Event) => void): () => void
  /** Runs verbs (not asynchronously) and gives their events to the caller instead of the listeners. */
  hold<T>(run: () => T): { result: T; events: Stripe.Event[] }
  /** Events of all accounts that nobody has acknowledged and that are not lost, oldest first. */
  unacknowledged(): Stripe.Event[]
  /** Closes the files. */
  close(): void
}

/**
 * Makes a simulated Stripe, or opens the one that is kept in the data directory.
 *
 * @example
 * const double = createStripeDouble({ signingSecret: 'whsec_test', seed: 'demo' })
 * const session = double.createSession({ clientReferenceId: '1001' })
 * const { events } = double.hold(() => double.completeSession(session.id))
 */
export function createStripeDouble(options: StripeDoubleOptions): StripeDouble {
  const account = options.account ?? 'acct_simulated'
  const seed = options.seed ?? randomUUID()
  const clock = options.clock ?? Date.now
  const state = new ObjectState({
    seed,
    account,
    clock,
    livemode: options.livemode ?? false,
    ...(options.dataDir !== undefined && { dataDir: options.dataDir }),
  })
  for (const connected of options.connectedAccounts ?? []) state.connect(connected)
  const log = new ProviderLog(options.dataDir)
  completeLog(state, log)
  const faults = new Faults()
  let lag: ListLag = options.listLagMs ?? 0
  let endpoints = options.webhookEndpoints ?? [{ url: 'https://shop.example/webhooks/stripe' }]
  const listeners = new Set<(event: Stripe.Event) => void>()
  let held: Stripe.Event[] | undefined

  state.onEvents = (owner, events) => {
    for (const event of events) {
      log.append(entryOf(owner, event, clock()))
      if (held) held.push(event)
      else for (const listener of listeners) listener(event)
    }
  }
  const api = new ApiServer({
    state,
    log,
    faults,
    account,
    seed,
    lag: () => lag,
    livemode: options.livemode ?? false,
    endpoints: () => endpoints,
    ...(options.apiKey !== undefined && { apiKey: options.apiKey }),
  })

  return {
    ...bindVerbs(state, account),
    signingSecret: options.signingSecret,
    log,
    forAccount(id) {
      state.connect(id)
      return bindVerbs(state, id)
    },
    handleRequest: (request, response) => api.handle(request, response),
    fault: (rule) => faults.plant(rule),
    setListLag: (next) => {
      lag = next
    },
    setWebhookEndpoints: (next) => {
      endpoints = next
    },
    forget: (id, owner = account) => state.forget(owner, id),
    onEvent(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    hold(run) {
      const outer = held
      const events: Stripe.Event[] = []
      held = events
      try {
        return { result: run(), events }
      } finally {
        held = outer
      }
    },
    unacknowledged: () => unacknowledged(state, log, clock()),
    close() {
      state.close()
      log.close()
    },
  }
}

function unacknowledged(state: ObjectState, log: ProviderLog, nowMs: number): Stripe.Event[] {
  return state
    .accounts()
    .flatMap((account) => state.records(account, 'event'))
    .filter((record) => nowMs - record.createdMs < eventRetentionMs)
    .sort((one, other) => one.sequence - other.sequence)
    .map((record) => record.object)
    .filter((event) => !log.isAcknowledged(event.id) && !log.isDropped(event.id))
}

/** A kill between the two files leaves events that the log does not have yet: it gets them now. */
function completeLog(state: ObjectState, log: ProviderLog): void {
  const known = new Set(log.entries('event').map((entry) => entry.eventId))
  for (const account of state.accounts()) {
    for (const { object, createdMs } of state.records(account, 'event')) {
      if (!known.has(object.id)) log.append(entryOf(account, object, createdMs))
    }
  }
}

function entryOf(account: string, event: Stripe.Event, at: number) {
  const object = event.data.object as { id?: string }
  return {
    kind: 'event',
    at,
    account,
    eventId: event.id,
    type: event.type,
    objectId: object.id ?? null,
  } as const
}
