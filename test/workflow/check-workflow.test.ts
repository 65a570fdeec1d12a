import { describe, expect, test } from 'vitest'
import { checkWorkflow } from '../../src/workflow/check-workflow.ts'
import { fulfill, move, reverse } from '../../src/workflow/decision.ts'
import type { WorkflowOptions } from '../../src/workflow/define-workflow.ts'
import type { History, Workflow } from '../../src/workflow/workflow.ts'
import { playOutbox } from '../../src/workflow/play-outbox.ts'
import { defineLoosely, definePay, pay, usd } from '../support/pay-events.ts'
import { scripted } from '../support/scripted-workflow.ts'

type Options = Partial<WorkflowOptions<never, string, string, string, 'app' | 'event'>>

function shop(options: Options = {}): ReturnType<typeof defineLoosely> {
  return defineLoosely('shop', {
    sources: ['pay'],
    initial: 'pending',
    opens: 'event',
    accepts: () => true,
    states: { pending: {}, paid: { entitles: true }, refunded: {} },
    transitions: { pending: ['paid', 'refunded'], paid: ['refunded'], refunded: ['paid'] },
    effects: { license: {}, refund: {} },
    ...options,
  })
    .on('paid', {
      order: ({ event }) => event.order,
      decide: ({ effects }) =>
        fulfill({
          to: effects.some((each) => each.type === 'refund') ? 'refunded' : 'paid',
          payment: { id: 'pi_1', money: usd(4900) },
          effects: [{ type: 'license' }],
        }),
    })
    .on('refunded', {
      order: ({ event }) => event.order,
      decide: () => move({ to: 'refunded', once: { type: 'refund' } }),
    })
}

const events = [pay('paid', { order: '1' }), pay('refunded', { order: '1' })]
const histories: readonly History[] = [{ name: 'refunded', events }]
const sends = new Map([['pay', ['paid', 'refunded']]])

function messages(workflow: Workflow, sent: Parameters<typeof checkWorkflow>[1] = sends): string[] {
  return checkWorkflow(workflow, sent).map((each) => `${each.kind}: ${each.message}`)
}

describe('checkWorkflow', () => {
  test('says nothing of a sound workflow', () => {
    expect(messages(shop({ histories }))).toEqual([])
  })

  test('names states that no transitions lead to', () => {
    const states = { pending: {}, paid: { entitles: true }, refunded: {}, island: {} }
    expect(messages(shop({ histories, states }))).toEqual([
      'unreachable_state: workflow "shop": no transitions lead from "pending" to state "island"',
    ])
  })

  test.each([[[]], [['paid']]])(
    'names an entitling state with no way out (transitions %j)',
    (paid) => {
      const transitions = { pending: ['refunded', 'paid'], paid, refunded: ['paid'] }
      expect(
        messages(shop({ histories, transitions })).filter((each) => each.startsWith('no_way_out')),
      ).toEqual([
        'no_way_out: workflow "shop": state "paid" entitles and has no way out: what it grants could never be revoked',
      ])
    },
  )

  test('a state that does not entitle needs no way out', () => {
    const transitions = { pending: ['paid', 'refunded'], paid: ['refunded'], refunded: [] }
    expect(messages(shop({ histories, transitions }))).toEqual([])
  })

  test('names a declared effect that no history makes', () => {
    const effects = { license: {}, refund: {}, dispute: {} }
    expect(messages(shop({ histories, effects }))).toEqual([
      'effect_never_made: workflow "shop": no history of it makes the declared effect "dispute"',
    ])
  })

  test('a reversal alone does not make its effect', () => {
    const reversing = shop({ effects: { license: {}, refund: {}, lost: {} } }).on('found', {
      order: ({ event }) => event.order,
      decide: () => reverse({ of: { type: 'lost' } }),
    })
    const played = {
      ...reversing,
      histories: [{ name: 'all', events: [...events, pay('found', { order: '1' })] }],
    }
    expect(messages(played, new Map()).join()).toContain('declared effect "lost"')
  })

  test('names handled types that no source sends, and the nearest that one does', () => {
    const sent = new Map([['pay', ['paid', 'refund', 'canceled']]])
    expect(messages(shop({ histories }), sent)).toEqual([
      'never_sent: workflow "shop": no source of it sends "refunded", did you mean "refund"?',
    ])
  })

  test('says nothing of types where a source may send anything', () => {
    expect(messages(shop({ histories }), new Map([['pay', undefined]]))).toEqual([])
    expect(messages(shop({ histories }), new Map())).toEqual([])
  })

  test("names a workflow that opens: 'event' without accepts", () => {
    expect(messages(shop({ histories, accepts: undefined }))).toEqual([
      expect.stringContaining(
        'opens_without_accepts: workflow "shop": events open its orders and it has no accepts',
      ),
    ])
    expect(messages(shop({ accepts: undefined, opens: 'app' })).join()).not.toContain('accepts')
  })

  test.each([[undefined], [[]]])('says "not checked" of a workflow with histories %j', (none) => {
    expect(messages(shop({ histories: none }))).toEqual([
      expect.stringContaining('not_checked: workflow "shop": not checked'),
    ])
  })

  test('names a workflow that handles nothing', () => {
    const idle = definePay('idle', {
      sources: ['pay'],
      initial: 'pending',
      states: { pending: {} },
      transitions: {},
      effects: {},
    })
    expect(checkWorkflow(idle, sends).map((each) => each.kind)).toEqual([
      'no_handlers',
      'not_checked',
    ])
  })

  test('names a history of which nothing is handled: it would prove nothing', () => {
    const other = [...histories, { name: 'strange', events: [pay('charge.failed')] }]
    expect(messages(shop({ histories: other }))).toEqual([
      'history_idle: workflow "shop": nothing in history "strange" concerns it: nothing handles charge.failed',
    ])
  })

  test('names a history in which an event ends dead', () => {
    const bad = [...histories, { name: 'bad', events: [pay('paid', { order: 'x'.repeat(300) })] }]
    expect(messages(shop({ histories: bad })).join()).toContain(
      'in history "bad", paid ends dead: the order id is longer than 255 bytes',
    )
  })

  test('names a workflow whose history ends differently in another order', () => {
    const careless = shop({ histories }).on('reopened', {
      order: ({ event }) => event.order,
      decide: ({ event }) => move({ to: 'paid', once: { type: 'license', reference: event.id } }),
    })
    const played = {
      ...careless,
      histories: [
        { name: 'reopened', events: [...events, pay('reopened', { id: 'evt_re', order: '1' })] },
      ],
    }
    const [warning] = checkWorkflow(played, new Map())
    expect(warning).toMatchObject({ workflow: 'shop', kind: 'not_confluent' })
    expect(warning?.message).toContain(
      'not confluent: history "reopened" ends differently when its events come as',
    )
  })

  test('names a history that sends to what the configuration does not know', () => {
    const sender = scripted({
      paid: ({ event }) =>
        fulfill({ effects: [{ type: 'license', send: [{ to: 'email', body: event.order }] }] }),
    })
    const played = { ...sender, histories: [{ name: 'paid', events: events.slice(0, 1) }] }
    const destinations = { emails: { encode: () => new Uint8Array() } }
    const known = new Map([['pay', ['paid']]])
    const warned = (outbox: ReturnType<typeof playOutbox>): string[] =>
      checkWorkflow(played, known, outbox).flatMap(({ kind, message }) =>
        kind === 'history_fails' ? [message] : [],
      )
    expect(warned(playOutbox(destinations))).toEqual([
      'workflow "scripted": in history "paid", paid ends dead: workflow scripted, paid: send of effect license: no destination is named "email", did it mean "emails"?',
    ])
    expect(warned(playOutbox())).toEqual([])
  })
})
