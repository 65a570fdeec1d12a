import { describe, expect, test } from 'vitest'
import type { StripeSubscriptionOptions } from '../../../src/providers/stripe-subscription/options.ts'
import { stripeSubscription } from '../../../src/providers/stripe-subscription/stripe-subscription.ts'
import type { EntitlementClaim } from '../../../src/workflow/decision.ts'
import { day, input, item, older, start, subscription } from './subscription-objects.ts'

type Decided = Record<string, unknown> & { entitle?: readonly EntitlementClaim[] }

const usual: StripeSubscriptionOptions = {
  plans: {
    team_monthly: ({ quantity }) => ({ entitlement: 'team', quantity }),
    pro_monthly: 'pro',
    price_old: 'pro',
    prod_suite: () => [{ entitlement: 'pro' }, { entitlement: 'reports' }],
    free: () => null,
  },
  grace: { days: 3 },
  subject: ({ subscription: { metadata } }) => metadata['org'] && `org:${metadata['org']}`,
}

const decide = (
  given: ReturnType<typeof input>,
  options: Partial<StripeSubscriptionOptions> = {},
): Decided =>
  stripeSubscription({ ...usual, ...options }).mirror.decide(given) as unknown as Decided

/** `pro, team × 5 until 2026-01-04`. */
const setOf = ({ entitle }: Decided): string | undefined =>
  entitle
    ?.map(({ entitlement, quantity = 1, validUntil = null }) => {
      const count = quantity === 1 ? '' : ` × ${quantity}`
      const until = validUntil === null ? '' : ` until ${validUntil.toISOString().slice(0, 10)}`
      return `${entitlement}${count}${until}`
    })
    .join(', ')

describe('status', () => {
  test.each(['trialing', 'active'])('%s entitles, without an end', (status) => {
    const decided = decide(input(subscription(status)))
    expect(decided).toMatchObject({ kind: 'mirror', to: status, subject: 'org:1' })
    expect(setOf(decided)).toBe('pro')
    expect(decided).not.toHaveProperty('flag')
    expect(decided['settles']).toEqual(['unknown_status', 'unknown_price'])
  })

  test.each(['incomplete', 'unpaid', 'paused', 'canceled', 'incomplete_expired'])(
    '%s is a state of its own in which nothing is entitled',
    (status) => {
      const decided = decide(input(subscription(status)))
      expect(decided).toMatchObject({ kind: 'mirror', to: status })
      expect(stripeSubscription(usual).workflow.states[status as 'paused']).toEqual({})
      expect(decided).not.toHaveProperty('entitle')
    },
  )

  test('a subscription that Stripe does not know any more is gone, and entitles to nothing', () => {
    const decided = decide(input(null, { subject: 'org:1', stated: [{}] }))
    expect(decided).toMatchObject({ kind: 'mirror', to: 'gone' })
    expect(stripeSubscription(usual).workflow.states.gone).toEqual({})
  })

  test.each(['suspended', 'unseen', 'gone', 'toString', ''])(
    'the status "%s", which is none that is known, leaves all as it was and is flagged',
    (status) => {
      const decided = decide(input(subscription(status), { state: 'active', stated: [{}] }))
      expect(decided).toMatchObject({ kind: 'mirror', flag: { kind: 'unknown_status' } })
      for (const part of ['to', 'entitle', 'subject', 'settles'])
        expect(decided).not.toHaveProperty(part)
    },
  )
})

describe('past due', () => {
  const unpaid = [item({ start: start + 31 * day, end: start + 59 * day })]

  test('access lasts for the grace from the start of the unpaid period', () => {
    const decided = decide(input(subscription('past_due', unpaid)))
    expect(decided).toMatchObject({ to: 'past_due' })
    expect(setOf(decided)).toBe('pro until 2026-02-04')
  })

  test('a later unpaid period gives no other grace', () => {
    const february = [item({ start: start + 31 * day, end: start + 59 * day })]
    const looked = subscription('past_due', february, { unpaid_since: start })
    expect(setOf(decide(input(looked)))).toBe('pro until 2026-01-04')
    expect(setOf(decide(input(subscription('past_due', february, { unpaid_since: null }))))).toBe(
      'pro until 2026-02-04',
    )
  })

  test('an invoice in the middle of a period gives its own grace', () => {
    const looked = subscription('past_due', [item()], { unpaid_since: start + 21 * day })
    expect(setOf(decide(input(looked)))).toBe('pro until 2026-01-25')
  })

  test('an object without its invoices leaves the end as a look found it, and sees everything else', () => {
    const stated = [{ validUntil: new Date((start + 3 * day) * 1000) }]
    const seats = item({ id: 'si_2', lookupKey: 'team_monthly', quantity: 4 })
    const listed = input(subscription('past_due', [...unpaid, seats]), {
      state: 'past_due',
      stated,
    })
    expect(setOf(decide(listed))).toBe('pro until 2026-01-04, team × 4 until 2026-01-04')
    const first = input(subscription('past_due', unpaid), { state: 'active', stated })
    expect(setOf(decide(first))).toBe('pro until 2026-02-04')
  })

  test('the newest period is the unpaid one, where items have periods of their own', () => {
    const yearly = item({ id: 'si_2', lookupKey: 'team_monthly', start: start - 300 * day })
    expect(setOf(decide(input(subscription('past_due', [yearly, ...unpaid]))))).toBe(
      'pro until 2026-02-04, team until 2026-02-04',
    )
  })

  test('older versions have the period on the subscription', () => {
    expect(setOf(decide(input(older('past_due'))))).toBe('pro until 2026-01-04')
  })

  test('without grace, with none, or without a period there is no access at all', () => {
    const current = subscription('past_due', unpaid)
    expect(setOf(decide(input(current), { grace: undefined }))).toBe('')
    expect(setOf(decide(input(current), { grace: { days: 0 } }))).toBe('')
    const timeless = subscription('past_due', [item({ start: undefined as never })])
    Object.assign(timeless.items.data[0]!, { current_period_start: null })
    expect(setOf(decide(input(timeless)))).toBe('')
  })

  test('a subscription that ends before its grace does ends access with it', () => {
    const current = subscription('past_due', unpaid, { cancel_at: start + 32 * day })
    expect(setOf(decide(input(current)))).toBe('pro until 2026-02-02')
  })
})

describe('its end', () => {
  test.each([
    ['at a moment of its own', { cancel_at: start + 10 * day }, 'pro until 2026-01-11'],
    [
      'with its period, as Stripe says it',
      { cancel_at_period_end: true, cancel_at: start + 31 * day },
      'pro until 2026-02-01',
    ],
    ['with its period, without the moment', { cancel_at_period_end: true }, 'pro until 2026-02-01'],
    ['not any more', { cancel_at_period_end: false, canceled_at: start }, 'pro'],
  ])('%s', (_, more, set) => {
    expect(setOf(decide(input(subscription('active', [item()], more))))).toBe(set)
    expect(setOf(decide(input(subscription('trialing', [item()], more))))).toBe(set)
  })

  test('with its period, in older versions', () => {
    expect(setOf(decide(input(older('active', { cancel_at_period_end: true }))))).toBe(
      'pro until 2026-02-01',
    )
  })
})

describe('prices', () => {
  const active = (...items: object[]): ReturnType<typeof input> =>
    input(subscription('active', items))

  test('are found by lookup key, else by id, else by product', () => {
    expect(setOf(decide(active(item({ price: 'price_old', product: 'prod_suite' }))))).toBe('pro')
    const moved = item({ lookupKey: null, price: 'price_old', product: 'prod_suite' })
    expect(setOf(decide(active(moved)))).toBe('pro')
    const byProduct = item({ lookupKey: null, product: { id: 'prod_suite' } })
    expect(setOf(decide(active(byProduct)))).toBe('pro, reports')
    expect(setOf(decide(active(item({ lookupKey: 'other', product: 'prod_suite' }))))).toBe(
      'pro, reports',
    )
  })

  test('seats are the quantities of all items of a price together', () => {
    const seats = [
      item({ id: 'si_1', lookupKey: 'team_monthly', quantity: 5 }),
      item({ id: 'si_2', lookupKey: 'team_monthly', quantity: 2 }),
    ]
    expect(setOf(decide(active(...seats)))).toBe('team × 7')
  })

  test('an entitlement by name is there once, however many are bought', () => {
    expect(setOf(decide(active(item({ quantity: 4 }), item({ id: 'si_2' }))))).toBe('pro')
  })

  test('an item of quantity 0, or one that was deleted, is nothing; a metered one is one', () => {
    expect(setOf(decide(active(item({ quantity: 0 }))))).toBe('')
    const seats = { lookupKey: 'team_monthly', quantity: 3 }
    expect(setOf(decide(active(item(), item({ id: 'si_2', ...seats, deleted: true }))))).toBe('pro')
    const metered = item({ lookupKey: 'team_monthly', quantity: undefined })
    expect(setOf(decide(active(metered)))).toBe('team')
  })

  test('a plan may say that a price entitles to nothing', () => {
    const decided = decide(active(item({ lookupKey: 'free' })))
    expect(setOf(decided)).toBe('')
    expect(decided).not.toHaveProperty('flag')
  })

  test.each([
    ['a text', () => 'team' as never],
    ['a promise', () => Promise.resolve({ entitlement: 'team' }) as never],
    ['another key', () => ({ name: 'team' }) as never],
    ['a negative quantity', () => ({ entitlement: 'team', quantity: -1 })],
    ['a part of one', () => [{ entitlement: 'team', quantity: 1.5 }]],
    ['a blank one', () => ({ entitlement: ' ' })],
    ['one with NUL', () => ({ entitlement: 'a\u0000' })],
    ['a long one', () => ({ entitlement: 'a'.repeat(256) })],
  ])('a function that answers with %s names its plan and the subscription', (_, plan) => {
    const given = active(item())
    expect(() => decide(given, { plans: { pro_monthly: plan } })).toThrow(
      /plan "pro_monthly" of subscription sub_1 must answer/,
    )
  })

  test('before 2020 an item had a plan in the place of a price', () => {
    const { price: _, ...plain } = item() as { price: unknown }
    const planned = { ...plain, plan: { id: 'price_old', product: 'prod_9' } }
    expect(setOf(decide(active(planned)))).toBe('pro')
  })

  test('keys that every object has are no plans', () => {
    expect(decide(active(item({ lookupKey: 'constructor' })))).toHaveProperty('flag')
  })
})

describe('a price without a plan', () => {
  const unknown = item({ id: 'si_9', lookupKey: 'enterprise', price: 'price_9', product: 'prod_9' })

  test('leaves access as it was, and is flagged with its key', () => {
    const decided = decide(
      input(subscription('active', [unknown]), {
        stated: [{ entitlement: 'team', quantity: 5 }],
      }),
    )
    expect(setOf(decided)).toBe('team × 5')
    expect(decided).toMatchObject({
      to: 'active',
      flag: {
        kind: 'unknown_price',
        figures: { subscription: 'sub_1', prices: 'enterprise' },
      },
      settles: ['unknown_status'],
    })
  })

  test('does not keep from anybody what the other items entitle to', () => {
    const given = input(subscription('active', [item(), unknown]))
    expect(setOf(decide(given))).toBe('pro')
    const before = input(subscription('active', [item(), unknown]), {
      stated: [{ entitlement: 'team', quantity: 5 }],
    })
    expect(setOf(decide(before))).toBe('pro, team × 5')
  })

  test('brings nothing back that had ended: by a state, by the clock, or without grace', () => {
    const gold = subscription('active', [unknown])
    const dormant = { entitlement: 'team', quantity: 5, active: false }
    expect(setOf(decide(input(gold, { state: 'unpaid', stated: [dormant] })))).toBe('')
    const passed = { entitlement: 'team', quantity: 5, validUntil: new Date(start * 1000) }
    expect(setOf(decide(input(gold, { state: 'active', stated: [passed] })))).toBe(
      'team × 5 until 2026-01-01',
    )
    expect(setOf(decide(input(gold, { state: 'past_due', stated: [] })))).toBe('')
    const late = subscription('past_due', [unknown])
    const stated = [{ entitlement: 'team', quantity: 5 }]
    expect(setOf(decide(input(late, { state: 'active', stated }), { grace: undefined }))).toBe('')
  })

  test('takes no seats of a known price away, and ends none of them sooner', () => {
    const both = [item({ lookupKey: 'team_monthly', quantity: 2 }), unknown]
    const held = (validUntil: Date | null) => [{ entitlement: 'team', quantity: 5, validUntil }]
    const decided = (validUntil: Date | null): string | undefined =>
      setOf(
        decide(input(subscription('active', both), { state: 'active', stated: held(validUntil) })),
      )
    expect(decided(null)).toBe('team × 5')
    expect(decided(new Date(start * 1000))).toBe('team × 2')
  })

  test('stays flagged until a look at which every price was known, or that is the last', () => {
    const settlesOf = (status: string, ...items: object[]): unknown =>
      decide(input(subscription(status, items)))['settles']
    const all = ['unknown_status', 'unknown_price']
    expect(settlesOf('unpaid', unknown)).toEqual(['unknown_status'])
    expect(settlesOf('paused', item(), unknown)).toEqual(['unknown_status'])
    expect(settlesOf('unpaid', item())).toEqual(all)
    const items = { object: 'list', data: [item()], has_more: true }
    const listed = subscription('unpaid', [], { items })
    expect(decide(input(listed))['settles']).toEqual(['unknown_status'])
    expect(settlesOf('canceled', unknown)).toEqual(all)
    expect(settlesOf('incomplete_expired', unknown)).toEqual(all)
  })

  test('what was there ends when the status says so', () => {
    const stated = [{ entitlement: 'team', quantity: 5 }]
    const late = subscription('past_due', [unknown])
    expect(setOf(decide(input(late, { stated })))).toBe('team × 5 until 2026-01-04')
    expect(decide(input(subscription('canceled', [unknown]), { stated }))).not.toHaveProperty(
      'entitle',
    )
  })
})

describe('a paused collection', () => {
  const paused = (behavior: string): ReturnType<typeof input> =>
    input(subscription('active', [item()], { pause_collection: { behavior, resumes_at: null } }))

  test('is no pause of the service, as long as Stripe calls it active', () => {
    for (const behavior of ['void', 'keep_as_draft', 'mark_uncollectible'])
      expect(decide(paused(behavior))).toMatchObject({ to: 'active' })
  })

  test('pauses access with the behaviors that are said to', () => {
    const pausedBy = ['void'] as const
    expect(decide(paused('void'), { pausedBy })).toMatchObject({ to: 'paused' })
    expect(decide(paused('keep_as_draft'), { pausedBy })).toMatchObject({ to: 'active' })
    const canceled = subscription('canceled', [item()], { pause_collection: { behavior: 'void' } })
    expect(decide(input(canceled), { pausedBy })).toMatchObject({ to: 'canceled' })
  })
})

describe('the subject', () => {
  const current = subscription('active', [item()], { metadata: {} })

  test('waits for its customer to be linked where the subscription names none', () => {
    const decided = decide(input(current, { linked: null }))
    expect(decided).toMatchObject({ kind: 'defer', missing: { kind: 'customer', id: 'cus_1' } })
  })

  test('is the linked one, else the one that the order has', () => {
    expect(decide(input(current, { linked: 'org:9' }))).toMatchObject({ subject: 'org:9' })
    const both = { linked: 'org:9', subject: 'org:3' }
    expect(decide(input(current, both))).toMatchObject({
      entitle: [{ subject: 'org:9' }],
    })
    expect(decide(input(current, { linked: null, subject: 'org:3' }))).toMatchObject({
      entitle: [{ subject: 'org:3' }],
    })
  })

  test('the customer is asked for only where it is needed', () => {
    const { mirror } = stripeSubscription(usual)
    const event = { data: { object: current } }
    expect(mirror.customer({ event, current })).toBe('cus_1')
    expect(mirror.customer({ event, current: subscription('active') })).toBeNull()
    expect(mirror.customer({ event, current: null })).toBeNull()
    const whole = subscription('active', [item()], { metadata: {}, customer: { id: 'cus_7' } })
    expect(mirror.customer({ event, current: whole })).toBe('cus_7')
  })

  test('is not asked for where nothing is entitled: a subject that throws keeps no access', () => {
    const { mirror } = stripeSubscription({
      ...usual,
      subject: ({ subscription: { metadata } }) => `org:${metadata['org']!.toLowerCase()}`,
    })
    const event = { data: { object: current } }
    for (const status of ['canceled', 'unpaid', 'paused', 'incomplete', 'suspended']) {
      const nobody = subscription(status, [item()], { metadata: {} })
      expect(mirror.customer({ event, current: nobody })).toBeNull()
    }
    expect(() => mirror.customer({ event, current })).toThrow()
  })

  test('nobody waits for a subscription that entitles to nothing', () => {
    const canceled = subscription('canceled', [item()], { metadata: {} })
    expect(decide(input(canceled, { linked: null }))).toMatchObject({ to: 'canceled' })
  })

  test('a subscription with neither a subject nor a customer is a contradiction', () => {
    const nobody = subscription('active', [item()], { metadata: {}, customer: null })
    expect(decide(input(nobody))).toMatchObject({ kind: 'contradict' })
  })

  test('follows the subscription when it moves to another one', () => {
    const moved = subscription('active', [item()], { metadata: { org: '2' } })
    const decided = decide(input(moved, { subject: 'org:1', stated: [{ subject: 'org:1' }] }))
    expect(decided).toMatchObject({ entitle: [{ subject: 'org:2', entitlement: 'pro' }] })
  })
})

test('a list of which not all items are there changes the state and leaves the set as it was', () => {
  const some = subscription('active', [item()], {
    items: { object: 'list', data: [item()], has_more: true },
  })
  const decided = decide(input(some, { stated: [{ entitlement: 'team' }] }))
  expect(decided).toMatchObject({ kind: 'mirror', to: 'active' })
  expect(decided).not.toHaveProperty('entitle')
})

test('the same object decides the same, whatever the order was before', () => {
  const current = subscription('past_due', [item({ lookupKey: 'team_monthly', quantity: 4 })])
  const fresh = decide(input(current))
  const later = decide(input(current, { state: 'canceled', subject: 'org:1', stated: [{}] }))
  expect(later).toEqual(fresh)
})
