/** A history of a workflow, ready to be delivered: its events signed as their provider signs them. */
import type { ResolvedConfig } from '../compose/options.ts'
import { signStandardWebhook, signStripe } from '../testing/sign.ts'
import { factsOfBody } from '../workflow/body-event.ts'
import type { History, Workflow } from '../workflow/workflow.ts'
import { slugOf } from './drill-case.ts'
import type { AppActs, DrillWorld, Outlook } from './messages.ts'
import { isLive, isMirror, isPaidBack, refundsOf } from './pure/derived-histories.ts'
import type { Signed } from './world/sender.ts'

/** A history with the workflow that it is of. */
export interface PlayedHistory {
  readonly workflow: Workflow
  readonly history: History
  readonly slug: string
  /** Whether anything of it is sent to a destination. */
  readonly sends: boolean
  /** Whether the provider is asked while it is decided. */
  readonly looks: boolean
  /** What happens when everything is paid back at its end; none where nothing is paid, or a mirror decides. */
  readonly refunds: readonly object[]
}

/** Every history of a configuration's workflows, with what playing it in memory has shown. */
export function historiesOf(
  config: ResolvedConfig,
  outlooks: Readonly<Record<string, Outlook>>,
): readonly PlayedHistory[] {
  return config.workflows.flatMap((workflow) =>
    (workflow.histories ?? []).map((history) => {
      const outlook = outlooks[`${workflow.name}/${history.name}`]
      const canBePaidBack =
        workflow.sources.includes('stripe') && !isMirror(workflow) && !isPaidBack(history)
      return {
        workflow,
        history,
        slug: slugOf(history.name),
        sends: outlook?.sends === true,
        looks: history.events.some(
          (event) => workflow.handlers.get(factsOfBody(event).eventType)?.mirror !== undefined,
        ),
        refunds: canBePaidBack ? refundsOf(outlook?.standing ?? [], isLive(history)) : [],
      }
    }),
  )
}

/** The history under which a case is played: its own, or with more events. */
export function withEvents(history: History, events: readonly object[]): History {
  return { ...history, events: [...history.events, ...events] }
}

/** Events as they are delivered to the source of the workflow that takes them. */
export function signedEvents(
  played: Pick<PlayedHistory, 'workflow' | 'history'>,
  config: ResolvedConfig,
  world: DrillWorld,
): readonly Signed[] {
  return played.history.events.map((event) => {
    const { eventId, eventType } = factsOfBody(event)
    const handling = [played.workflow, ...config.workflows].find((each) =>
      each.handlers.has(eventType),
    )
    const source = (handling ?? played.workflow).sources[0] ?? ''
    const provider = config.sources.get(source)?.source.provider
    // a drill plays in the test environment, whatever the factories say
    const body = Buffer.from(
      JSON.stringify('livemode' in event ? { ...event, livemode: false } : event),
    )
    return {
      eventId,
      source,
      body,
      headers: () =>
        provider === 'stripe'
          ? signStripe(body, world.stripeSecret)
          : signStandardWebhook(body, world.standardSecret, { id: eventId }),
    }
  })
}

/** What the app does at the beginning of a history; null where it does nothing. */
export function actsOf({ workflow, history }: PlayedHistory): AppActs | null {
  const { open, customers } = history
  if (open === undefined && customers === undefined) return null
  return {
    source: workflow.sources[0] ?? '',
    customers: customers ?? {},
    open:
      open === undefined
        ? null
        : {
            workflow: workflow.name,
            id: open.id,
            subject: open.subject,
            expected:
              open.expected === undefined
                ? null
                : {
                    amount: String(open.expected.amount),
                    currency: open.expected.currency,
                  },
          },
  }
}
