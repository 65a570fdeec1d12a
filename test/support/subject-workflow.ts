/**
 * A workflow whose events name the provider's customer or a subject, and what that one may use from then on:
 * for everything that is about subjects.
 */
import { linkedCustomer } from '../../src/workflow/decision.ts'
import { defer, fulfill, move, type Decision } from '../../src/workflow/decision.ts'
import { defineUntypedWorkflow } from '../../src/workflow/define-workflow.ts'
import type { DecideInput, Workflow } from '../../src/workflow/workflow.ts'

/** A body of its events. */
export interface SubjectBody {
  readonly id: string
  readonly order: string
  readonly customer?: string
  readonly subject?: string
  readonly entitlement?: string
  readonly quantity?: number
  readonly until?: string | null
}

/** `set` states what the order entitles to, `end` ends it, `wrong` waits for a customer that nobody names. */
export function subjectWorkflow(): Workflow {
  const bodyOf = (event: unknown): SubjectBody => event as SubjectBody
  return defineUntypedWorkflow('seats', {
    sources: ['probe'],
    initial: 'none',
    opens: 'event',
    states: { none: {}, active: { entitles: true }, ended: {} } as never,
    transitions: { none: ['active', 'ended'], active: ['ended'], ended: ['active'] } as never,
    effects: { note: {} } as never,
  })
    .on('set', {
      order: ({ event }) => bodyOf(event).order,
      customer: ({ event }) => bodyOf(event).customer,
      decide: ({ event, customer }) => stated(bodyOf(event), customer) as never,
    })
    .on('end', {
      order: ({ event }) => bodyOf(event).order,
      decide: ({ event }) =>
        move({ to: 'ended', once: { type: 'note', reference: bodyOf(event).id } }) as never,
    })
    .on('wrong', {
      order: ({ event }) => bodyOf(event).order,
      decide: () => defer({ missing: linkedCustomer('cus_nobody') }) as never,
    })
}

function stated(body: SubjectBody, customer: DecideInput['customer']): Decision {
  if (customer !== null && customer.subject === null)
    return defer({ missing: linkedCustomer(customer.id) }) as Decision
  const subject = customer?.subject ?? body.subject ?? `user:${body.order}`
  return fulfill({
    to: 'active',
    effects: [{ type: 'note', reference: body.id }],
    entitle: [
      {
        subject,
        entitlement: body.entitlement ?? 'team',
        quantity: body.quantity ?? 1,
        validUntil: body.until == null ? null : new Date(body.until),
      },
    ],
    subject,
  }) as Decision
}
