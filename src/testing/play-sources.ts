/**
 * From a provider's body to an event, by the rule of the configured source: its account, unless the
 * body names another one that the source admits.
 */
import { Buffer } from 'node:buffer'
import { HookledgerError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'
import { factsOfBody, type BodyFacts } from '../workflow/body-event.ts'
import { operationOfKey } from '../workflow/caused-by.ts'
import type { Environment, InboxEvent } from '../workflow/event.ts'
import type { Workflow } from '../workflow/workflow.ts'
import type { PlayAnswering } from './play-provider.ts'

/**
 * A source as `play` needs it: one that is configured (`stripe(…)`), or only its account; and what its provider
 * answers, where workflows mirror or gather.
 */
export interface PlaySource extends PlayAnswering {
  /** Default: the source's name. */
  readonly provider?: string | undefined
  /** The fixed account; default: the source's name. */
  readonly account?: string | undefined
  /** Whether events of another account may act here; default: none. */
  readonly allowsAccount?: ((account: string) => boolean) | undefined
  /** The key of the request that caused an event; default: none is known. */
  readonly requestKey?: ((body: Readonly<Record<string, unknown>>) => string | null) | undefined
}

/** A delivery with its headers. The signature is not checked: nothing was received. */
export interface PlayDelivery {
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string | Uint8Array
}

/** What can be delivered: a provider's body, parsed or as text or bytes, or with the headers it came with. */
export type Deliverable = object | string | Uint8Array | PlayDelivery

/** When and where an event arrives. */
export interface ArrivalPoint {
  readonly key: bigint
  readonly receivedAt: Date
  /** The name of the source; undefined: the first of the first workflow that handles the type. */
  readonly source: string | undefined
}

interface NamedSource {
  readonly name: string
  readonly provider: string
  readonly account: string
  readonly allows: (account: string) => boolean
  readonly requestKey: PlaySource['requestKey']
}

/** The sources of a run in memory. */
export class PlaySources {
  readonly #sources = new Map<string, NamedSource>()
  readonly #ids = new Map<string, number>()
  readonly #workflows: readonly Workflow[]
  readonly #environment: Environment

  constructor(
    workflows: readonly Workflow[],
    sources: Readonly<Record<string, PlaySource>> | undefined,
    environment: Environment,
  ) {
    this.#workflows = workflows
    this.#environment = environment
    const given = new Map(Object.entries(sources ?? {}))
    const used = workflows.flatMap((workflow) => workflow.sources)
    for (const name of new Set([...given.keys(), ...used])) {
      const { provider = name, account = name, allowsAccount, requestKey } = given.get(name) ?? {}
      const allows = (other: string): boolean =>
        other === account || allowsAccount?.(other) === true
      this.#sources.set(name, { name, provider, account, allows, requestKey })
    }
  }

  /** The event that this delivery carries. */
  eventOf(delivered: Deliverable, at: ArrivalPoint): InboxEvent {
    const facts = readDelivery(delivered)
    const source = this.#named(at.source ?? this.#sourceOf(facts.eventType))
    const account = facts.account ?? source.account
    const environment = facts.environment ?? this.#environment
    return {
      key: at.key,
      sourceId: this.#idOf(`${source.provider}\n${account}\n${environment}`),
      source: Object.freeze({ name: source.name, provider: source.provider, account, environment }),
      accountAllowed: source.allows(account),
      eventId: facts.eventId,
      eventType: facts.eventType,
      receivedAt: at.receivedAt,
      occurredAt: facts.occurredAt,
      synthetic: false,
      causedBy: facts.content.readable
        ? operationOfKey(source.requestKey?.(facts.content.value))
        : null,
      content: facts.content,
    }
  }

  /** The namespace of a source's own account, or of one that it admits. */
  sourceId(name: string, account?: string): number {
    const source = this.#named(name)
    return this.#idOf(`${source.provider}\n${account ?? source.account}\n${this.#environment}`)
  }

  #named(name: string): NamedSource {
    const source = this.#sources.get(name)
    if (source !== undefined) return source
    const near = nearest(name, this.#sources.keys())
    const hint = near === null ? '' : `, did you mean "${near}"?`
    throw new HookledgerError(
      'HKL_CONFIG_UNKNOWN_NAME',
      `no workflow has a source "${name}"${hint}`,
    )
  }

  #sourceOf(eventType: string): string {
    const handling = this.#workflows.find((workflow) => workflow.handlers.has(eventType))
    return (handling ?? this.#workflows[0])?.sources[0] ?? ''
  }

  #idOf(identity: string): number {
    const id = this.#ids.get(identity) ?? this.#ids.size + 1
    this.#ids.set(identity, id)
    return id
  }
}

function readDelivery(delivered: Deliverable): BodyFacts {
  if (typeof delivered === 'string') return factsOfBody(delivered)
  if (delivered instanceof Uint8Array) return factsOfBody(textOf(delivered))
  if (!isDelivery(delivered)) return factsOfBody(delivered)
  const { headers, body } = delivered
  const facts = factsOfBody(typeof body === 'string' ? body : textOf(body))
  // Standard Webhooks names the event in a header
  const eventId = headers['webhook-id'] ?? headers['svix-id']
  return eventId === undefined ? facts : { ...facts, eventId }
}

function isDelivery(delivered: object): delivered is PlayDelivery {
  if (!('headers' in delivered && 'body' in delivered)) return false
  return typeof delivered.body === 'string' || delivered.body instanceof Uint8Array
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8')
}
