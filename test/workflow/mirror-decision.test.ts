import { describe, expect, test } from 'vitest'
import { checkedDecision } from '../../src/workflow/checked-decision.ts'
import {
  contradict,
  defer,
  fulfill,
  linkedCustomer,
  mirrored,
  move,
  reverse,
  skip,
} from '../../src/workflow/decision.ts'
import { lookedObject } from '../../src/workflow/looked-object.ts'
import { playOutbox } from '../../src/workflow/play-outbox.ts'
import { name } from '../../src/workflow/resolution.ts'
import type { History } from '../../src/workflow/workflow.ts'
import { planWorkflow } from '../support/plan-workflow.ts'
import { defineLoosely } from '../support/pay-events.ts'

const workflow = planWorkflow()

function checked(answer: unknown, mirrors: boolean): unknown {
  return checkedDecision(answer, workflow, {
    eventType: 'plan.updated',
    outbox: playOutbox(),
    mirrors,
  })
}

describe('what a mirror may answer', () => {
  test.each<[string, unknown]>([
    ['a state', mirrored({ to: 'active' })],
    ['a set alone', mirrored({ entitle: [{ subject: 'org:1', entitlement: 'team' }] })],
    ['an effect that happens once', mirrored({ effects: [{ type: 'reminder', reference: 'a' }] })],
    ['nothing at all', mirrored({})],
    ['skip', skip('not ours')],
    ['a wait for a customer', defer({ missing: linkedCustomer('cus_1') })],
    ['a contradiction', contradict('it cannot be')],
  ])('%s', (_, answer) => {
    expect(checked(answer, true)).toMatchObject(answer as object)
  })

  test.each<[string, unknown]>([
    ['fulfill', fulfill({ effects: [{ type: 'credits' }] })],
    ['move', move({ to: 'active', once: { type: 'credits' } })],
    ['reverse', reverse({ of: { type: 'credits' } })],
  ])('not %s: what counts once has a handler of its own', (_, answer) => {
    expect(() => checked(answer, true)).toThrow(/a mirror answers with mirrored.*for \.on/)
  })

  test.each<[string, unknown, RegExp]>([
    ['an unknown state', mirrored({ to: 'actve' }), /no state "actve", did it mean "active"/],
    ['an unknown effect', mirrored({ effects: [{ type: 'credit' }] }), /no effect "credit"/],
    ['a payment', { ...mirrored({}), payment: { id: 'pi_1' } }, /a mirror records no payment/],
    ['settles that is no list', { ...mirrored({}), settles: 'x' }, /settles must be a list/],
    ['a settled kind that is no text', { ...mirrored({}), settles: [7] }, /settled finding/],
    [
      'a quantity of nothing',
      mirrored({ entitle: [{ subject: 'a', entitlement: 'b', quantity: 0 }] }),
      /positive integer/,
    ],
    [
      'an end that is no date',
      mirrored({ entitle: [{ subject: 'a', entitlement: 'b', validUntil: new Date(NaN) }] }),
      /validUntil/,
    ],
    [
      'a customer without id',
      defer({ missing: linkedCustomer('') }),
      /customer to be linked is empty/,
    ],
    ['a flag without kind', mirrored({ flag: { kind: '' } }), /kind of the flag/],
  ])('not %s', (_, answer, message) => {
    expect(() => checked(answer, true)).toThrow(message)
  })

  test('and no other handler may answer with mirrored', () => {
    expect(() => checked(mirrored({ to: 'active' }), false)).toThrow(
      /for what \.mirror\(\) handles/,
    )
  })
})

describe('what a mirror may look at', () => {
  test('a name, frozen', () => {
    const object = lookedObject(name('subscription', 'sub_1'))
    expect(object).toEqual({ kind: 'subscription', value: 'sub_1' })
    expect(Object.isFrozen(object)).toBe(true)
  })

  test.each<[string, unknown]>([
    ['nothing', null],
    ['a text', 'sub_1'],
    ['a promise', Promise.resolve(name('subscription', 'sub_1'))],
    ['a name without kind', { value: 'sub_1' }],
    ['an id with NUL', { kind: 'subscription', value: 'a\u0000' }],
    ['an id that is too long', { kind: 'subscription', value: 'a'.repeat(256) }],
    ['an event, which is what gatherings look at', { kind: 'event', value: '1' }],
  ])('not %s', (_, answer) => {
    expect(() => lookedObject(answer)).toThrow()
  })
})

describe('.mirror in plain JavaScript', () => {
  const options = {
    sources: ['pay'],
    initial: 'new',
    states: { new: {} },
    transitions: {},
    effects: {},
  }
  const whole = {
    order: () => '1',
    object: () => name('plan', '1'),
    fetch: () => Promise.resolve(null),
    decide: () => skip('no'),
  }
  const define = (types: unknown, handler: unknown): unknown =>
    defineLoosely('plans', options).mirror(types as never, handler as never)

  test.each<[string, unknown, unknown, RegExp]>([
    ['no types', [], whole, /mirror names no event types/],
    ['an empty type', '', whole, /must be a text/],
    ['a type that is no text', [7], whole, /must be a text/],
    ['nothing', 'a', undefined, /options must be an object/],
    ['no order', 'a', { ...whole, order: undefined }, /order must be a function/],
    ['no object', 'a', { ...whole, object: undefined }, /object must be a function/],
    ['a fetch that is no function', 'a', { ...whole, fetch: {} }, /fetch must be a function/],
    ['no decide', 'a', { ...whole, decide: undefined }, /decide must be a function/],
    ['a customer that is no function', 'a', { ...whole, customer: 'cus_1' }, /customer must be/],
    [
      'gather, which a mirror does not have',
      'a',
      { ...whole, gather: () => 1 },
      /unknown option "gather"/,
    ],
    ['a typing mistake', 'a', { ...whole, fetsh: whole.fetch }, /"fetsh", did you mean "fetch"/],
  ])('%s stops the start', (_, types, handler, message) => {
    expect(() => define(types, handler)).toThrow(message)
  })

  test('.on takes gather, and neither object nor fetch', () => {
    const { order, decide, object, fetch } = whole
    const on = (handler: unknown): unknown =>
      defineLoosely('plans', options).on('a', handler as never)
    expect(() => on({ order, decide, gather: () => Promise.resolve(1) })).not.toThrow()
    expect(() => on({ order, decide, gather: 1 })).toThrow(/gather must be a function/)
    expect(() => on({ order, decide, object, fetch })).toThrow(/unknown option "object"/)
  })

  test('a type is mirrored or counts once, not both', () => {
    const mirrors = defineLoosely('plans', options).mirror('a' as never, whole as never)
    const { order, decide } = whole
    expect(() => mirrors.on('a', { order, decide } as never)).toThrow(/handles "a" twice/)
    expect(() => mirrors.mirror('a' as never, whole as never)).toThrow(/handles "a" twice/)
  })

  test('all types of one mirror share one handler, and the version tells it from one that counts', () => {
    const mirrors = defineLoosely('plans', options).mirror(['a', 'b'] as never, whole as never)
    expect(mirrors.handlers.get('a')).toBe(mirrors.handlers.get('b'))
    const { order, decide } = whole
    const counts = defineLoosely('plans', options).on(
      ['a', 'b'] as never,
      { order, decide } as never,
    )
    expect(mirrors.version).not.toBe(counts.version)
  })

  test.each<[string, Partial<History>, RegExp]>([
    ['present', { present: [] as never }, /present must be an object/],
    ['gathered', { gathered: 'evt_1' as never }, /gathered must be an object/],
    ['customers', { customers: null as never }, /customers must be an object/],
  ])('a history whose %s is none stops the start', (_, more, message) => {
    const histories = [{ name: 'one', events: [], ...more }]
    expect(() => defineLoosely('plans', { ...options, histories })).toThrow(message)
  })
})
