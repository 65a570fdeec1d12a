/**
 * What the provider would answer while a history is played: the objects as they are at its end, or as the
 * latest of the events that have come shows them. A look finds the one or the other, depending on when it is
 * made, and the end must be the same.
 */
import { PermanentError } from '../core/errors.ts'
import { toJson } from '../core/json.ts'
import { anyEvent, freezeJson } from './any-event.ts'
import type { BodyFacts } from './body-event.ts'
import type { InboxEvent } from './event.ts'
import { lookedObject } from './looked-object.ts'
import type { Name } from './order.ts'
import type { PlayProvider } from './play-answers.ts'
import type { AnyHandler, History, Workflow } from './workflow.ts'

/** When a look is made: after everything has happened, or as soon as an event has come. */
export type LookTime = 'end' | 'latest'

/** What a history says of the provider's objects. */
export class HistoryObjects {
  readonly #history: History
  /** What is there at the end, by the object's text, as it is read back. */
  readonly #present: ReadonlyMap<string, unknown>
  readonly #gathered: ReadonlyMap<string, unknown>
  /** By the object's text: the steps of the events about it, in the history's order. */
  readonly #steps = new Map<string, number[]>()
  readonly #bodies: readonly unknown[]
  /** Whether anything of the history is looked at. */
  readonly looks: boolean

  constructor(
    workflows: readonly Workflow[],
    history: History,
    facts: readonly BodyFacts[],
    arrive: (step: number) => InboxEvent,
  ) {
    this.#history = history
    this.#present = plainOf(history.present)
    this.#gathered = plainOf(history.gathered)
    this.#bodies = facts.map((each) => objectOf(each))
    facts.forEach((each, step) => {
      for (const workflow of workflows) {
        const object = lookedAt(workflow.handlers.get(each.eventType), each, () => arrive(step))
        if (object === null) continue
        const text = textOf(object)
        this.#steps.set(text, [...(this.#steps.get(text) ?? []), step])
      }
    })
    this.looks = this.#steps.size > 0
  }

  /** What is answered while the steps in `come` have come. */
  provider(time: LookTime, come: ReadonlySet<number>): PlayProvider {
    return {
      isPlain: true,
      present: (object) => this.#found(object, time, come),
      gathered: ({ eventId }) => this.#gathered.get(eventId),
    }
  }

  #found(object: Name, time: LookTime, come: ReadonlySet<number>): unknown {
    const text = textOf(object)
    const steps = this.#steps.get(text) ?? []
    const last = steps.at(-1) ?? -1
    const isEnd = time === 'end' || come.has(last)
    if (isEnd && this.#present.has(text)) return this.#present.get(text)
    const shown = steps.filter((step) => isOf(this.#bodies[step], object))
    const latest = shown.filter((step) => isEnd || come.has(step)).at(-1) ?? shown[0]
    if (latest !== undefined) return this.#bodies[latest]
    if (this.#present.has(text)) return this.#present.get(text)
    throw new PermanentError(
      `history "${this.#history.name}" does not say what ${text} is at the provider: add it to present (null: gone)`,
    )
  }
}

function lookedAt(
  handler: AnyHandler | undefined,
  { content }: BodyFacts,
  arrive: () => InboxEvent,
): Name | null {
  if (handler?.mirror === undefined || !content.readable) return null
  try {
    return lookedObject(handler.mirror.object({ event: anyEvent(arrive(), content.value) }))
  } catch {
    // playing it says what is wrong
    return null
  }
}

/** What an event carries: Stripe's `data.object`, or all of `data`. */
function objectOf({ content }: BodyFacts): unknown {
  if (!content.readable) return undefined
  const data = content.value['data']
  if (typeof data !== 'object' || data === null) return undefined
  return 'object' in data && typeof data.object === 'object' ? data.object : data
}

/** An event may say "look again" and carry something else: an invoice, of a subscription. */
function isOf(body: unknown, { value }: Name): boolean {
  return typeof body === 'object' && body !== null && 'id' in body && body.id === value
}

/** What a history says, by its keys: frozen once, however often it is played. */
function plainOf(values: Readonly<Record<string, unknown>> = {}): ReadonlyMap<string, unknown> {
  return new Map(
    Object.entries(values).map(([key, value]) => [
      key,
      freezeJson(JSON.parse(toJson(value ?? null)) as unknown),
    ]),
  )
}

function textOf({ kind, value }: Name): string {
  return `${kind} ${value}`
}

/** Whether an event of the history is gathered for, and the history does not say what is found out. */
export function isUnsaid(handler: AnyHandler | undefined, history: History, id: string): boolean {
  return (
    handler?.gather !== undefined &&
    (history.gathered === undefined || !Object.hasOwn(history.gathered, id))
  )
}
