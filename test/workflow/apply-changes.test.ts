import { describe, expect, test } from 'vitest'
import { fulfill, move, type EntitlementClaim } from '../../src/workflow/decision.ts'
import { play, type Play } from '../../src/testing/play.ts'
import { pay } from '../support/pay-events.ts'
import { scripted, type Script } from '../support/scripted-workflow.ts'

const pro: EntitlementClaim = { subject: 'user:1', entitlement: 'pro' }

function stating(sets: Readonly<Record<string, readonly EntitlementClaim[] | undefined>>): Play {
  const scripts: Record<string, Script> = {}
  for (const [type, entitle] of Object.entries(sets)) {
    scripts[type] = ({ event, order }) =>
      fulfill({
        to: event.to ?? order.state,
        effects: [{ type: 'seat', reference: event.id }],
        ...(entitle && { entitle }),
      })
  }
  scripts['moved'] = ({ event }) =>
    move({ to: event.to ?? 'paid', once: { type: 'seat', reference: event.id } })
  return play([scripted(scripts)])
}

function active(app: Play): string[] {
  return app
    .order('1')
    .entitlements.filter((row) => row.active)
    .map((row) => `${row.subject} ${row.entitlement}`)
}

describe('entitle', () => {
  test('states the whole set: what is not in it is revoked, what is new is granted', () => {
    const app = stating({
      first: [pro, { subject: 'user:1', entitlement: 'beta' }],
      second: [pro, { subject: 'org:7', entitlement: 'pro' }],
    })
    app.deliver(pay('first', { order: '1', to: 'paid' }))
    app.deliver(pay('second', { order: '1' }))
    expect(app.order('1').decisions).toMatchObject([
      { granted: ['user:1 pro', 'user:1 beta'], revoked: [] },
      { granted: ['org:7 pro'], revoked: ['user:1 beta'] },
    ])
    expect(active(app)).toEqual(['user:1 pro', 'org:7 pro'])
  })

  test('an empty set entitles to nothing', () => {
    const app = stating({ first: [pro], none: [] })
    app.deliver(pay('first', { order: '1', to: 'paid' }))
    app.deliver(pay('none', { order: '1' }))
    expect(active(app)).toEqual([])
    expect(app.entitlements('user:1')).toEqual([])
  })

  test('a decision that states no set keeps the last one', () => {
    const app = stating({ first: [pro], silent: undefined })
    app.deliver(pay('first', { order: '1', to: 'paid' }))
    app.deliver(pay('silent', { order: '1' }))
    expect(active(app)).toEqual(['user:1 pro'])
  })

  test('the set is dormant outside entitling states, and active again in one: nobody forgets to revoke', () => {
    const app = stating({ first: [pro] })
    app.deliver(pay('first', { order: '1', to: 'paid' }))
    app.deliver(pay('moved', { order: '1', to: 'disputed' }))
    expect(active(app)).toEqual([])
    expect(app.order('1').entitlements).toMatchObject([{ ...pro, active: false }])
    app.deliver(pay('moved', { order: '1', to: 'paid' }))
    expect(active(app)).toEqual(['user:1 pro'])
    expect(
      app.order('1').decisions.map((each) => [each.granted.length, each.revoked.length]),
    ).toEqual([
      [1, 0],
      [0, 1],
      [1, 0],
    ])
  })

  test('a set that is stated outside entitling states grants nothing until the order is in one', () => {
    const app = stating({ first: [pro] })
    app.deliver(pay('first', { order: '1', to: 'disputed' }))
    expect(app.entitlements('user:1')).toEqual([])
    app.deliver(pay('moved', { order: '1', to: 'paid' }))
    expect(app.entitlements('user:1')).toMatchObject([{ entitlement: 'pro' }])
  })

  test('quantity and end of the set last stated hold', () => {
    const until = new Date('2026-02-01T00:00:00Z')
    const app = stating({
      first: [{ ...pro, quantity: 5 }],
      second: [{ ...pro, quantity: 2, validUntil: until }],
    })
    app.deliver(pay('first', { order: '1', to: 'paid' }))
    expect(app.entitlements('user:1')).toEqual([
      { entitlement: 'pro', quantity: 5, validUntil: null },
    ])
    app.deliver(pay('second', { order: '1' }))
    expect(app.entitlements('user:1')).toEqual([
      { entitlement: 'pro', quantity: 2, validUntil: until },
    ])
  })

  test('an entitlement past its end is no longer current', () => {
    const app = stating({ first: [{ ...pro, validUntil: new Date('2026-01-02T00:00:00Z') }] })
    app.deliver(pay('first', { order: '1', to: 'paid' }))
    app.advance(86_400_000 - 1)
    expect(app.entitlements('user:1')).toHaveLength(1)
    app.advance(1)
    expect(app.entitlements('user:1')).toEqual([])
  })

  test('the date that was given may be moved afterwards without moving the entitlement', () => {
    const until = new Date('2026-02-01T00:00:00Z')
    const app = stating({ first: [{ ...pro, validUntil: until }] })
    app.deliver(pay('first', { order: '1', to: 'paid' }))
    until.setFullYear(2099)
    expect(app.entitlements('user:1')[0]?.validUntil).toEqual(new Date('2026-02-01T00:00:00Z'))
  })
})

describe('subject', () => {
  test('is named by the first decision that names one, and never changed', () => {
    const named =
      (subject: string): Script =>
      ({ event }) =>
        fulfill({ effects: [{ type: 'seat', reference: event.id }], subject })
    const app = play([scripted({ first: named('user:1'), second: named('user:2') })])
    app.deliver(pay('first', { order: '1' }))
    app.deliver(pay('second', { order: '1' }))
    expect(app.order('1').subject).toBe('user:1')
  })
})

describe('the reason of a decision', () => {
  test('is its own where it gives one, else says what was made', () => {
    const app = play([
      scripted({
        given: () =>
          fulfill({ to: 'paid', effects: [{ type: 'license' }], reason: 'paid in full' }),
        silent: () => fulfill({ effects: [{ type: 'seat', reference: 's1' }] }),
      }),
    ])
    app.deliver(pay('given', { order: '1' }))
    app.deliver(pay('silent', { order: '1' }))
    expect(app.order('1').decisions.map((each) => each.reason)).toEqual([
      'paid in full',
      'stays paid: seat s1',
    ])
  })
})
