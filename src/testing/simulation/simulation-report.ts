/**
 * What a run of the simulation tells: while it goes, and in the end.
 */
import type { ExpectedCredit, ExpectedOutcome } from './expected-outcome.ts'
import type { SimulatedOrder } from './simulated-order.ts'

/** How far a run has come. */
export interface SimulationProgress {
  /** Orders, subscriptions and organizations that have begun. */
  begun: number
  total: number
  /** Copies of events handed to the sender. */
  deliveries: number
  /** Copies answered 2xx. */
  acknowledged: number
  /** Refusals and failures so far; each was or will be tried again. */
  failedAttempts: number
}

/** What was done. */
export interface SimulationCounts {
  orders: number
  subscriptions: number
  /** Organizations that subscribed. */
  organizations: number
  /** Different events sent. */
  events: number
  /** Copies sent: what the receiver was asked to take. */
  deliveries: number
  /** Copies beyond the first of their event. */
  duplicates: number
  /** Events that were sent more than once. */
  duplicatedEvents: number
  /** Events that were sent after a later one of the same order. */
  reordered: number
  /** Events lost on purpose. */
  lost: number
  /** Events that no receiver acknowledged although they were sent. */
  undelivered: number
  /** Orders opened by the shop before they were paid, and after their events were sent. */
  openedFirst: number
  openedLate: number
  /** Orders that the shop could not open. */
  failedOpenings: number
}

/** What the shop must have in the end, over all orders of the run. */
export interface SimulationExpectations {
  /** Orders that were ever paid for: one license each. */
  licenses: number
  /** Orders whose customer may use the license now. */
  entitlements: number
  /** Payments that pay for nothing: less than the list price, or another currency. */
  contradictions: number
  /** Payments for an order that was paid already. */
  paidAgain: number
  /** Paid invoices that add credits, and the credits. */
  creditedInvoices: number
  credits: number
}

/** An event that was lost on purpose: only the provider's own records tell of it. */
export interface LostEvent {
  eventId: string
  type: string
  /** The order that it is about; null for subscriptions and for what concerns no order. */
  orderId: string | null
}

/** A run, with the truth that it made. */
export interface SimulationResult {
  orders: SimulatedOrder[]
  /** What was lost, in the order in which it was made. */
  lost: LostEvent[]
  /** By order id: what the shop must know of the orders of this run. */
  outcomes: Map<string, ExpectedOutcome>
  /** What the paid invoices of this run must have added. */
  credits: ExpectedCredit[]
  /** Names of the organizations that subscribed in this run. */
  organizations: string[]
  expected: SimulationExpectations
  counts: SimulationCounts
  /** Real time, in milliseconds. */
  elapsedMs: number
  /** Whether the signal ended it. */
  stopped: boolean
}
