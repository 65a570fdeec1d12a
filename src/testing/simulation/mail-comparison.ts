/**
 * What the ledger says of its emails against what the mail service itself wrote down: two testimonies that
 * share nothing but the key on the wire. No difference means that every email arrived, and once.
 */
import type { MailKeyRecord, MailLog } from '../mail-double/mail-log.ts'

/** What the ledger says of one email. */
export interface EmailOperation {
  readonly operationId: string
  readonly orderId: string | null
  readonly state: string
  /** Calls whose attempt was committed. */
  readonly calls: number
}

/** Where the two say something else, one line each. */
export function compareMail(operations: readonly EmailOperation[], log: MailLog): string[] {
  const received = byOperation(log)
  const differences: string[] = []
  for (const operation of operations) {
    differences.push(...differencesOf(operation, received.get(operation.operationId) ?? []))
    received.delete(operation.operationId)
  }
  for (const [id, records] of received) {
    const emails = sum(records, (record) => record.emails.length)
    differences.push(
      `the mail service was called ${sum(records, (record) => record.calls)} times for ${id} and sent ${emails} emails, the ledger knows no such operation`,
    )
  }
  return differences
}

function differencesOf(operation: EmailOperation, records: readonly MailKeyRecord[]): string[] {
  const { operationId, orderId, state, calls } = operation
  const email =
    orderId === null ? `email ${operationId}` : `email ${operationId} of order ${orderId}`
  const arrived = sum(records, (record) => record.emails.length)
  const received = sum(records, (record) => record.calls)
  const differences: string[] = []
  if (state !== 'sent') differences.push(`${email} is ${state}, and arrived ${arrived} times`)
  else if (arrived !== 1) differences.push(`${email} is sent, but arrived ${arrived} times`)
  if (received > calls)
    differences.push(`${email} was called ${received} times, the ledger knows of ${calls}`)
  if (new Set(records.flatMap((record) => [...record.sha256])).size > 1)
    differences.push(`${email} did not come with the same bytes every time`)
  for (const { email: sent } of records.flatMap((record) => record.emails)) {
    if (sent['order'] !== orderId)
      differences.push(`${email} arrived as one of order ${String(sent['order'])}`)
  }
  return differences
}

/** Keys of one operation differ by their generation only: `id`, then `id:2`. */
function byOperation(log: MailLog): Map<string, MailKeyRecord[]> {
  const operations = new Map<string, MailKeyRecord[]>()
  for (const record of log.keys()) {
    const id = record.key.split(':')[0] ?? ''
    operations.set(id, [...(operations.get(id) ?? []), record])
  }
  return operations
}

function sum<T>(items: readonly T[], valueOf: (item: T) => number): number {
  return items.reduce((total, item) => total + valueOf(item), 0)
}
