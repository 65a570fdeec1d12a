/**
 * A provider in memory that is asked about plans: a test says what each request is answered with, and when. Each
 * request is kept, so that a test can count them.
 */
import type { ProviderApi } from '../../src/workflow/provider-api.ts'
import { defineUntypedWorkflow } from '../../src/workflow/define-workflow.ts'
import { fulfill, mirrored } from '../../src/workflow/decision.ts'
import type { FetchInput, GatherInput } from '../../src/workflow/gathering.ts'
import { name } from '../../src/workflow/resolution.ts'
import type { AnyEvent, Workflow } from '../../src/workflow/workflow.ts'

/** A request as the provider saw it. */
export interface SeenRequest {
  readonly id: string
  readonly account: string
  readonly signal: AbortSignal
}

/** The provider and its workflow. */
export class AskedProvider {
  readonly plans = new Map<string, unknown>()
  readonly seen: SeenRequest[] = []
  readonly gathered: GatherInput<AnyEvent>[] = []
  /** In the place of the usual answer. */
  answer: ((request: SeenRequest) => unknown) | undefined
  /** In the place of what `gather` finds out. */
  found: ((input: GatherInput<AnyEvent>) => unknown) | undefined

  reset(): void {
    this.plans.clear()
    this.seen.length = 0
    this.gathered.length = 0
    this.answer = undefined
    this.found = undefined
  }

  readonly calls: ProviderApi = {
    client: (account, signal) => ({
      retrieve: (id: string) => this.#retrieve({ id, account, signal }),
    }),
    failureOf: (error) => (error instanceof Refusal ? error.failure : unknownFailure),
  }

  /** How many requests there were about a plan. */
  asked(id: string): number {
    return this.seen.filter((each) => each.id === id).length
  }

  async #retrieve(request: SeenRequest): Promise<unknown> {
    this.seen.push(request)
    const answered: unknown =
      this.answer === undefined ? this.plans.get(request.id) : await this.answer(request)
    if (answered === undefined) throw new Refusal({ kind: 'gone', text: 'no such plan' })
    return answered
  }

  /** `look` mirrors the plan of an order, `ask` gathers. */
  workflow(sources: readonly string[] = ['probe']): Workflow {
    const orderOf = ({ event }: { readonly event: object }): string =>
      String((event as AnyEvent)['order'])
    return defineUntypedWorkflow('plans', {
      sources,
      initial: 'none',
      opens: 'event',
      states: { none: {}, active: { entitles: true }, late: {}, ended: {} } as never,
      transitions: { none: ['active'], active: ['late', 'ended'], late: ['active'] } as never,
      effects: { note: {} } as never,
    })
      .mirror('look', {
        order: orderOf,
        object: ({ event }) => name('plan', String((event as unknown as AnyEvent)['plan'])),
        fetch: ({ object, api }: FetchInput) =>
          (api as { retrieve(id: string): Promise<unknown> }).retrieve(object.value),
        decide: ({ current, order }) => {
          const plan = current as { readonly status: string; readonly seats?: number } | null
          const subject = `org:${order.id}`
          return mirrored({
            to: plan === null ? 'ended' : plan.status,
            subject,
            entitle:
              plan?.status === 'active'
                ? [{ subject, entitlement: 'team', quantity: plan.seats ?? 1 }]
                : [],
          }) as never
        },
      })
      .on<'ask', unknown>('ask', {
        order: orderOf,
        gather: async (input) => {
          this.gathered.push(input as never)
          return this.found?.(input as never) ?? { found: true }
        },
        decide: ({ event, evidence }) =>
          fulfill({
            effects: [
              {
                type: 'note',
                reference: String((event as unknown as AnyEvent)['id']),
                data: { evidence },
              },
            ],
          }) as never,
      })
  }
}

/** A failed call, with what it means. */
export class Refusal extends Error {
  readonly failure: ReturnType<ProviderApi['failureOf']>

  constructor(failure: ReturnType<ProviderApi['failureOf']>) {
    super(failure.text)
    this.failure = failure
  }
}

const unknownFailure = { kind: 'unknown', text: 'a fault in the code that asks' } as const

/** The provider is away. */
export function away(): never {
  throw new Refusal({ kind: 'later', isRateLimit: false, retryAfterMs: null, text: 'HTTP 503' })
}
