import { describe, expect, test } from 'vitest'
import type { StripeSubscriptionOptions } from '../../../src/providers/stripe-subscription/options.ts'
import { stripeSubscription } from '../../../src/providers/stripe-subscription/stripe-subscription.ts'

const made = (options: unknown) => () => stripeSubscription(options as StripeSubscriptionOptions)
const plans = { pro_monthly: 'pro' }

describe('options', () => {
  test.each([
    ['nothing', undefined, /options must be an object/],
    [
      'an unknown one',
      { plans, grase: { days: 3 } },
      /unknown option "grase", did you mean "grace"/,
    ],
    ['no plans', {}, /plans must be an object/],
    ['a list of plans', { plans: ['pro'] }, /plans must be an object/],
    ['plans without one', { plans: {} }, /plans must name/],
    [
      'a plan of another kind',
      { plans: { pro_monthly: 3 } },
      /"pro_monthly" must be an entitlement/,
    ],
    ['an empty entitlement', { plans: { pro_monthly: '' } }, /"pro_monthly" is blank/],
    ['a blank entitlement', { plans: { pro_monthly: ' ' } }, /"pro_monthly" is blank/],
    ['NUL', { plans: { pro_monthly: 'a\u0000' } }, /"pro_monthly" contains NUL/],
    ['a long one', { plans: { pro_monthly: 'a'.repeat(5000) } }, /longer than 255 bytes/],
    ['grace in hours', { plans, grace: { hours: 3 } }, /grace must be \{ days \}/],
    ['grace in both', { plans, grace: { days: 3, hours: 5 } }, /unknown part of grace "hours"/],
    ['grace of NaN', { plans, grace: { days: Number.NaN } }, /0 to 366 days/],
    ['grace for ever', { plans, grace: { days: 1e9 } }, /0 to 366 days/],
    ['no grace object', { plans, grace: null }, /grace must be/],
    ['a subject that is none', { plans, subject: 'org' }, /subject must be a function/],
    ['another pause', { plans, pausedBy: ['avoid'] }, /pausedBy must be a list of keep_as_draft/],
  ])('%s is refused by name', (_, options, message) => {
    expect(made(options)).toThrow(message)
    expect(made(options)).toThrow(expect.objectContaining({ code: 'HKL_WORKFLOW_INVALID' }))
  })

  test('grace may be nothing, or a part of a day', () => {
    expect(made({ plans, grace: { days: 0 } })).not.toThrow()
    expect(made({ plans, grace: { days: 0.5 } })).not.toThrow()
  })
})
