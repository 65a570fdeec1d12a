/**
 * A workflow whose decisions a test writes down one by one: the body of an event says which order it
 * is about, and the test says what is decided of its type.
 */
import type { Decision } from '../../src/workflow/decision.ts'
import { byName, name } from '../../src/workflow/resolution.ts'
import type {
  Accepts,
  Compare,
  DecideInput,
  StateOptions,
  Workflow,
} from '../../src/workflow/workflow.ts'
import { anyTransition, definePay, shopStates, type PayBody } from './pay-events.ts'

/** What one type decides. */
export type Script = (
  input: Omit<DecideInput, 'event'> & { readonly event: PayBody & { readonly receivedAt: Date } },
) => unknown

/** What differs from a workflow that events open, in which every state leads to every other. */
export interface ScriptedOptions {
  readonly name?: string
  readonly opens?: 'app' | 'event'
  readonly states?: Readonly<Record<string, StateOptions>>
  readonly transitions?: Readonly<Record<string, readonly string[]>>
  readonly accepts?: Accepts
  readonly destinations?: readonly string[]
  readonly compare?: Compare
}

/**
 * A workflow with a script for each type. An event with `order` claims it and teaches its payment as a
 * name; one without waits for the order that its payment is a name of.
 */
export function scripted(
  scripts: Readonly<Record<string, Script>>,
  options: ScriptedOptions = {},
): Workflow {
  let workflow = definePay(options.name ?? 'scripted', {
    sources: ['pay'],
    initial: 'pending',
    opens: options.opens ?? 'event',
    states: (options.states ?? shopStates) as typeof shopStates,
    transitions: (options.transitions ?? anyTransition) as typeof anyTransition,
    effects: { license: {}, refund: {}, seat: {} },
    accepts: options.accepts as never,
    destinations: options.destinations,
    compare: options.compare as never,
  })
  for (const [type, script] of Object.entries(scripts)) {
    workflow = workflow.on(type, {
      order: ({ event }) => event.order ?? byName('payment', event.payment),
      learn: ({ event }) => [name('payment', event.payment)],
      decide: (input) => script(input as never) as Decision<never, never>,
    })
  }
  return workflow
}
