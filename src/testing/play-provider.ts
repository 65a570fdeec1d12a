/**
 * The provider of a run in memory: whatever a test says that it would answer. What is not said stops the
 * test with the line to add, and is never taken for an object that is gone.
 */
import { HookledgerError } from '../core/errors.ts'
import { anyEvent } from '../workflow/any-event.ts'
import type { InboxEvent } from '../workflow/event.ts'
import type { Name } from '../workflow/order.ts'
import type { PlayProvider } from '../workflow/play-answers.ts'
import type { AnyEvent } from '../workflow/workflow.ts'

/** What a source's provider answers in memory. */
export interface PlayAnswering {
  /**
   * A mirror's object as it is now; null: gone. It takes the place of `fetch`, and is called once however
   * many events of a batch ask for the same object.
   */
  readonly present?: ((object: Name, account: string) => object | null) | undefined
  /** What `gather` finds out for an event, in whose place it is called. */
  readonly gathered?: ((event: AnyEvent, account: string) => unknown) | undefined
}

/** Asks what the sources were given, by their names. */
export function playProvider(sources: Readonly<Record<string, PlayAnswering>> = {}): PlayProvider {
  const of = (name: string | null): PlayAnswering | undefined =>
    name !== null && Object.hasOwn(sources, name) ? sources[name] : undefined
  return {
    isPlain: false,
    present(object, { name, account }) {
      const { kind, value } = object
      const { present } = of(name) ?? {}
      if (present === undefined) unsaid(name, `present: ({ kind, value }) => …`, `${kind} ${value}`)
      return answered(present(object, account), `present for ${kind} ${value}`)
    },
    gathered(event) {
      const { name, account } = event.source
      const { gathered } = of(name) ?? {}
      if (gathered === undefined)
        unsaid(name, `gathered: (event) => …`, `gather for ${event.eventType} ${event.eventId}`)
      return answered(gathered(bodyOf(event), account), `gathered for ${event.eventId}`, true)
    },
  }
}

function bodyOf(event: InboxEvent): AnyEvent {
  return anyEvent(event, event.content.readable ? event.content.value : {})
}

function answered(value: unknown, what: string, mayBeUndefined = false): unknown {
  if (typeof value === 'object' && value !== null && 'then' in value) {
    throw new HookledgerError(
      'HKL_CONFIG_INVALID',
      `${what} answered a promise: in memory it must answer at once, await it before`,
    )
  }
  if (value === undefined && !mayBeUndefined) {
    throw new HookledgerError(
      'HKL_CONFIG_INVALID',
      `${what} answered undefined: answer null where the provider has no such object`,
    )
  }
  return value
}

function unsaid(source: string | null, option: string, what: string): never {
  throw new HookledgerError(
    'HKL_CONFIG_INVALID',
    `play does not know what ${what} is at the provider: give it sources: { ${source}: { ${option} } }`,
  )
}
