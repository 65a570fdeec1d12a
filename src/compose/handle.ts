/** Plain handlers, typed by the provider's events where the source is named after it. */
import type { StripeEvents } from '../providers/stripe-event-types.ts'
import type { EventsOf } from '../workflow/define-workflow.ts'
import type { ReceivedEvent } from '../workflow/event.ts'
import type { HandlerOutbox } from '../workflow/outbox-port.ts'
import type { PlainHandler } from '../workflow/registry.ts'
import type { Resolution } from '../workflow/resolution.ts'
import type { UserExecutor } from '../workflow/workflow.ts'

type Events<SourceName extends string> = EventsOf<{ readonly stripe: StripeEvents }, SourceName>

/**
 * A handler for an event that concerns no order: runs once, in the engine's own transaction. What it
 * writes through `db`, what it adds to `outbox` and "this event is processed" commit together.
 *
 * @example handle('stripe', 'account.updated', async ({ event, db }) => { await db.query('…', [event.id]) })
 */
export function handle<
  const SourceName extends string,
  const Type extends keyof Events<SourceName> & string,
>(
  source: SourceName,
  types: Type | readonly Type[],
  run: (input: {
    readonly event: ReceivedEvent<Events<SourceName>[Type]>
    readonly db: UserExecutor
    readonly outbox: HandlerOutbox
  }) => Promise<Resolution | void>,
): PlainHandler {
  return {
    source,
    types: typeof types === 'string' ? [types] : [...types],
    run: run as unknown as PlainHandler['run'],
  }
}
