/** What an oracle finds, and what it is asked about. Nothing in this directory shares code with what it judges. */

/** The promises, as the documentation numbers them. */
export type PromiseId = 'P1' | 'P2' | 'P3' | 'P4' | 'P5' | 'P6' | 'P7' | 'P8' | 'P9' | 'P10'

/** Each promise in a few words. */
export const promiseTitles: Readonly<Record<PromiseId, string>> = {
  P1: 'durable acceptance',
  P2: 'one effect',
  P3: 'one commit',
  P4: 'no unpaid entitlement',
  P5: 'nothing silently stuck',
  P6: 'one external operation',
  P7: 'reconciliation converges',
  P8: 'everything is explained',
  P9: 'payloads are restricted',
  P10: 'order does not matter',
}

/** One thing that is wrong: a stable code, the promise that it breaks, and where it shows. */
export interface Violation {
  readonly fault: string
  readonly promise: PromiseId
  readonly detail: string
}

/** One request as its sender saw it. */
export interface SentDelivery {
  readonly eventId: string
  /** Hex. */
  readonly sha256: string
  /** `ok`: a full 2xx was read. `fail`: certainly not accepted. `info`: either may be true. */
  readonly outcome: 'ok' | 'fail' | 'info'
}

/** One call as a destination saw it. */
export interface SeenCall {
  readonly destination: string
  readonly key: string
  /** Hex, of the body as it came. */
  readonly sha256: string
  /** Null where nothing was answered. */
  readonly status: number | null
  /** Whether the work was done for this call: once for a key, where keys are honored. */
  readonly applied: boolean
}

/** An event of the provider. */
export interface MadeEvent {
  readonly eventId: string
  /** Unix seconds; null where it does not say. */
  readonly created: number | null
}

/** Everything known from outside the product. */
export interface SeenHistory {
  readonly deliveries: readonly SentDelivery[]
  readonly calls: readonly SeenCall[]
  /** Every event of the provider that has been made, whether or not it was delivered. */
  readonly made: readonly MadeEvent[]
  /** Whether every event must have arrived in the end. */
  readonly complete: boolean
}

/** Anything that asks PostgreSQL. */
export interface Asked {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>
}
