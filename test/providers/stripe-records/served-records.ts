import {
  stripeRecords,
  type StripeRecordsOptions,
} from '../../../src/providers/stripe-records/stripe-records.ts'
import type { StripeDoubleOptions } from '../../../src/testing/stripe-double/stripe-double.ts'
import type { ProviderRecord, Records, RecordsError } from '../../../src/workflow/records.ts'
import {
  manualClock,
  serveWithClient,
  type ServedClient,
} from '../../testing/stripe-double/stripe-client.ts'

/** Never aborted. */
export const going: AbortSignal = new AbortController().signal

/** A provider on a port, and its records as a source asks for them. */
export interface ServedRecords extends ServedClient {
  records: Records
  clock: ReturnType<typeof manualClock>
  /** Everything of a kind made since the start, and the pages it came in. */
  walk(kind: string, options?: WalkOptions): Promise<{ records: ProviderRecord[]; pages: number }>
}

export interface WalkOptions {
  account?: string
  limit?: number
  from?: Date
  to?: Date
  /** Called before each page but the first. */
  between?: () => void
}

export async function serveRecords(
  options: Partial<StripeDoubleOptions> = {},
  records: Partial<StripeRecordsOptions> = {},
): Promise<ServedRecords> {
  const clock = manualClock()
  const start = new Date(clock.now())
  const served = await serveWithClient({ clock: clock.now, ...options })
  const made = stripeRecords({
    base: served.url,
    key: 'sk_test_123',
    environment: 'test',
    ...records,
  })
  return {
    ...served,
    records: made,
    clock,
    async walk(kind, { account = 'stripe', limit = 100, between, ...window } = {}) {
      const found: ProviderRecord[] = []
      let cursor: string | null = null
      let pages = 0
      do {
        if (pages > 0) between?.()
        const { from = start, to = new Date(clock.now() + 1000) } = window
        const page = await made.list({ kind, account, from, to, cursor, limit, signal: going })
        found.push(...page.records)
        cursor = page.next
        pages++
      } while (cursor !== null && pages < 100)
      return { records: found, pages }
    },
    [Symbol.asyncDispose]: () => served[Symbol.asyncDispose](),
  }
}

/** What the promise was rejected with. */
export async function troubleOf(promise: Promise<unknown>): Promise<RecordsError> {
  return promise.then(
    () => {
      throw new Error('it was answered')
    },
    (error: unknown) => error as RecordsError,
  )
}

export const idsOf = (records: readonly { id: string }[]): string[] => records.map(({ id }) => id)
