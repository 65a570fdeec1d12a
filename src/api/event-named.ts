/** The event that an address names: its source as lists show it, and the provider's id. */
import { HookledgerError } from '../core/errors.ts'
import type { Database } from '../postgres/executor.ts'

/** An event as it is kept. */
export interface NamedEvent {
  readonly event_key: string
  /** `provider:account:environment`. */
  readonly source: string
  readonly event_id: string
}

/**
 * `source` is `provider:account:environment`, or without the environment where no other source is called so.
 *
 * @throws HookledgerError HKL_INBOX_EVENT_UNKNOWN
 */
export async function requireEvent(
  db: Database,
  { source, event_id: id }: { readonly source: string; readonly event_id: string },
): Promise<NamedEvent> {
  const s = db.schema
  const [row] = await db.query<NamedEvent>({
    text: `select e.event_key, concat_ws(':', n.provider, n.provider_account, n.environment) as source, e.event_id
      from ${s}sources n join ${s}inbox_events e on e.source_id = n.source_id and e.event_id = $2
      where $1 in (concat_ws(':', n.provider, n.provider_account, n.environment), concat_ws(':', n.provider, n.provider_account))
      order by concat_ws(':', n.provider, n.provider_account, n.environment) = $1 desc limit 1`,
    values: [source, id],
  })
  if (row !== undefined) return row
  throw unknownEvent()
}

/** What is thrown where there is none. */
export function unknownEvent(): HookledgerError {
  return new HookledgerError(
    'HKL_INBOX_EVENT_UNKNOWN',
    'no such event was ever received from this source: look for its id in the search',
  )
}
