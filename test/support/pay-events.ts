/** A provider for tests of the engine: small bodies whose every field is at hand. */
import {
  defineUntypedWorkflow,
  type DefineWorkflow,
  type WorkflowBuilder,
} from '../../src/workflow/define-workflow.ts'
import { money, type Money } from '../../src/core/money.ts'

/** A body of the test provider. */
export interface PayBody {
  readonly id: string
  readonly type: string
  readonly order?: string | null
  readonly payment?: string
  readonly amount?: number
  readonly reference?: string
  readonly to?: string
  readonly livemode?: boolean
  readonly account?: string
  readonly created?: number
}

/** Defines workflows over the test provider, whose source is named `pay`. */
export const definePay: DefineWorkflow<{
  pay: Readonly<Record<string, PayBody>>
  other: Readonly<Record<string, PayBody>>
}> = defineUntypedWorkflow as never

/** The same without the types that hold a workflow to what it declares: as plain JavaScript sees it. */
export const defineLoosely = defineUntypedWorkflow as never as (
  name: string,
  options: object,
) => WorkflowBuilder<Readonly<Record<string, PayBody>>, string, string, string | null>

let made = 0

/** An event of the test provider, with an id of its own unless one is given. */
export function pay(type: string, fields: Partial<PayBody> = {}): PayBody {
  made += 1
  return { id: `evt_${made}`, type, ...fields }
}

/** US dollars. */
export function usd(cents: number): Money {
  return money(cents, 'usd')
}

/** States and transitions that most tests need. */
export const shopStates = {
  pending: {},
  paid: { entitles: true },
  disputed: {},
  refunded: {},
  canceled: {},
} as const

/** Every state of the shop leads to every other. */
export const anyTransition = {
  pending: ['paid', 'disputed', 'refunded', 'canceled'],
  paid: ['disputed', 'refunded', 'canceled'],
  disputed: ['paid', 'refunded', 'canceled'],
  refunded: ['paid', 'disputed'],
  canceled: ['paid', 'disputed', 'refunded'],
} as const
