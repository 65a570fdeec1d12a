/** What a drill and its child processes say to one another. A child that is killed says nothing more. */
import type { FaultAction } from '../testing/fault-plan.ts'

/** What a child process is. */
export type DrillRole = 'receive' | 'work' | 'dispatch' | 'reconcile'

/** Where the drill's own doubles are; the same for all children of a drill. */
export interface DrillWorld {
  /** The scratch database, through the drill's proxy. */
  readonly databaseUrl: string
  /** What the scratch database's comment says: a pool that leads elsewhere is refused. */
  readonly mark: string
  readonly providerUrl: string
  readonly destinationUrl: string
  /** Signs deliveries as Stripe does. */
  readonly stripeSecret: string
  /** Signs deliveries as Standard Webhooks says. */
  readonly standardSecret: string
}

/** An order that the app opens, and the customers that it links, at the beginning of a history. */
export interface AppActs {
  readonly open: {
    readonly workflow: string
    readonly id: string
    readonly subject: string
    /** Minor units as a text: a bigint does not travel. */
    readonly expected: { readonly amount: string; readonly currency: string } | null
  } | null
  readonly source: string
  readonly customers: Readonly<Record<string, string>>
}

/** From the drill to a child. */
export type ChildOrder =
  /** Makes the product anew on the database as it is now, with faults planned as `W3:1:kill`. */
  | {
      readonly kind: 'open'
      readonly role: DrillRole
      readonly plan: string
    }
  | { readonly kind: 'act'; readonly acts: AppActs }
  | { readonly kind: 'reconcile' }
  | { readonly kind: 'wake' }
  | { readonly kind: 'close' }
  | { readonly kind: 'check'; readonly seed: number; readonly samples: number }

/** A fault that was found by playing workflows in memory. */
export interface PureFault {
  readonly fault: string
  readonly workflow: string
  readonly history: string
  readonly detail: string
  /** The smallest order of events that shows it; empty where the order does not matter. */
  readonly schedule: readonly string[]
}

/** A payment that a history leaves standing at its end. */
export interface Standing {
  readonly payment: string
  /** Minor units. */
  readonly amount: number
  readonly currency: string
}

/** What a history leads to, as far as cases are made of it. */
export interface Outlook {
  readonly standing: readonly Standing[]
  /** Whether anything is sent to a destination. */
  readonly sends: boolean
}

/** What a check in memory came to. */
export interface PureReport {
  readonly faults: readonly PureFault[]
  /** How many orders were played of each check. */
  readonly cases: Readonly<Record<string, number>>
  /** By workflow and history: its end, to be compared with another process's. */
  readonly ends: Readonly<Record<string, string>>
  /** By workflow and history: what cases can be made of it. */
  readonly outlooks: Readonly<Record<string, Outlook>>
}

/** From a child to the drill. */
export type ChildReport =
  | { readonly kind: 'ready' }
  | { readonly kind: 'opened'; readonly port: number }
  | { readonly kind: 'done' }
  | { readonly kind: 'closed'; readonly reached: readonly string[] }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  | { readonly kind: 'fault'; readonly step: string; readonly action: FaultAction }
  /** Another role has something to do. */
  | { readonly kind: 'wake'; readonly role: DrillRole }
  | { readonly kind: 'checked'; readonly report: PureReport }
