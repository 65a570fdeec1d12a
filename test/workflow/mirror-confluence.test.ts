import { describe, expect, test } from 'vitest'
import { checkConfluence } from '../../src/workflow/confluence.ts'
import { checkWorkflow } from '../../src/workflow/check-workflow.ts'
import { defer, effect, fulfill, mirrored } from '../../src/workflow/decision.ts'
import { endOf, HistoryRun } from '../../src/workflow/history-run.ts'
import { name } from '../../src/workflow/resolution.ts'
import type { History } from '../../src/workflow/workflow.ts'
import { planEvent, planTypes, planWorkflow, type Plan } from '../support/plan-workflow.ts'

const active: Plan = { id: 'p1', status: 'active' }
const canceled: Plan = { id: 'p1', status: 'canceled' }

const life: History = {
  name: 'a life',
  events: [
    planEvent('plan.created', { ...active, status: 'trialing' }, 'evt_created'),
    planEvent('plan.updated', active, 'evt_active'),
    planEvent('plan.updated', { ...active, status: 'past_due' }, 'evt_past_due'),
    planEvent('plan.updated', { ...active, seats: 2 }, 'evt_recovered'),
  ],
}

function stateAfter(history: History, steps: readonly number[], looks: 'end' | 'latest'): string {
  const run = new HistoryRun([planWorkflow()], history)
  return (
    endOf(
      run.play(
        steps.map((step) => [step]),
        looks,
      ),
    ).orders['p1']?.state ?? 'none'
  )
}

describe('a history of a mirror', () => {
  test('looks find the object as the last event about it shows it, or as the latest that has come', () => {
    expect(stateAfter(life, [0], 'end')).toBe('active')
    expect(stateAfter(life, [0], 'latest')).toBe('trialing')
    expect(stateAfter(life, [2, 0], 'latest')).toBe('past_due')
    expect(stateAfter(life, [2, 3, 0], 'latest')).toBe('active')
  })

  test('present overrides what the last event shows, and null is gone', () => {
    const gone = { ...life, present: { 'plan p1': null } }
    expect(stateAfter(gone, [0], 'end')).toBe('gone')
    expect(stateAfter(gone, [0], 'latest')).toBe('trialing')
    expect(stateAfter(gone, [3, 0], 'latest')).toBe('gone')
    const later = { ...life, present: { 'plan p1': canceled } }
    expect(stateAfter(later, [0, 1, 2, 3], 'end')).toBe('canceled')
  })

  test('an event that carries something else says only that there is something to look at', () => {
    const workflow = planWorkflow({ object: () => name('plan', 'p1') })
    const invoice = planEvent('plan.updated', { id: 'in_1', status: 'paid' })
    const run = new HistoryRun([workflow], {
      name: 'an invoice',
      events: [planEvent('plan.created', active), invoice],
    })
    const orders = endOf(run.play([[1]])).orders
    expect(orders['in_1']?.state).toBe('active')
  })

  test('an object of which nothing is known ends the event dead, with what to add', () => {
    const workflow = planWorkflow({ object: () => name('plan', 'other') })
    const run = new HistoryRun([workflow], {
      name: 'a life',
      events: [planEvent('plan.created', active)],
    })
    expect(Object.values(endOf(run.play([[0]])).dead)[0]).toMatch(
      /history "a life" does not say what plan other is at the provider: add it to present/,
    )
  })

  test('without anything that looks there is one time of looks', () => {
    const paid: History = { name: 'paid', events: [planEvent('invoice.paid', active)] }
    const workflow = planWorkflow({
      on: { 'invoice.paid': () => fulfill({ effects: [{ type: 'credits' }] }) },
    })
    expect(new HistoryRun([workflow], paid).lookTimes).toEqual(['end'])
    expect(new HistoryRun([workflow], life).lookTimes).toEqual(['end', 'latest'])
  })
})

describe('checkConfluence over mirrors', () => {
  test('passes where the last look counts', () => {
    const report = checkConfluence(planWorkflow(), [
      life,
      { ...life, name: 'gone', present: { 'plan p1': null } },
    ])
    expect(report).toEqual({ checked: 48, sampled: false, failures: [] })
  })

  test('fails where a mirror believes the event', () => {
    const naive = planWorkflow({
      decide: ({ event }) => mirrored({ to: event.data.object.status }),
    })
    const [failure] = checkConfluence(naive, [life]).failures
    expect(failure?.history).toBe('a life')
    expect(failure?.differs[0]).toMatch(/state/)
  })

  test('fails, and names the time of looks, where what a look saw on the way leaves something behind', () => {
    const greedy = planWorkflow({
      decide: ({ current }) =>
        mirrored({
          to: current?.status ?? 'gone',
          effects: current?.status === 'past_due' ? [{ type: 'reminder' }] : [],
        }),
    })
    const [failure] = checkConfluence(greedy, [life]).failures
    expect(failure?.looks).toBe('latest')
    expect(failure?.differs).toEqual([
      'orders, p1, effects, reminder: {"amount":null,"currency":null,"data":{},"payment":null}, not missing',
    ])
  })

  test('fails where a fact that counts once decides by a state that looks may or may not have seen', () => {
    const moody = planWorkflow({
      on: {
        'invoice.paid': ({ order }) =>
          fulfill({
            effects: order.state === 'trialing' ? [] : [{ type: 'credits' }],
            flag: { kind: 'x' },
          }),
      },
    })
    const events = [...life.events.slice(0, 2), planEvent('invoice.paid', active)]
    expect(checkConfluence(moody, [{ name: 'moody', events }]).failures).toHaveLength(1)
  })

  test('passes facts that count once beside a mirror, with refunds that wait for theirs', () => {
    const workflow = planWorkflow({
      on: {
        'invoice.paid': ({ event }) =>
          fulfill({ effects: [{ type: 'credits', reference: event.id }] }),
        'refund.created': ({ event, effects }) =>
          effects.some((each) => each.type === 'credits')
            ? fulfill({ effects: [{ type: 'refund', reference: event.id }] })
            : defer({ missing: effect('credits', 'in_1') }),
      },
    })
    const events = [
      ...life.events.slice(1),
      planEvent('invoice.paid', active, 'in_1'),
      planEvent('refund.created', active, 're_1'),
    ]
    expect(checkConfluence(workflow, [{ name: 'refunded', events }])).toEqual({
      checked: 120,
      sampled: false,
      failures: [],
    })
  })
})

describe('checkWorkflow over mirrors and gatherings', () => {
  const sends = new Map([['pay', [...planTypes, 'invoice.paid']]])
  const only = {
    ...life,
    name: 'whole',
    events: [...life.events, planEvent('invoice.paid', active, 'in_1')],
  }
  const paid = {
    'invoice.paid': () =>
      fulfill({ effects: ['credits', 'refund', 'reminder'].map((type) => ({ type })) }),
  }
  const said = (options: Parameters<typeof planWorkflow>[0]): string[] =>
    checkWorkflow(planWorkflow(options), sends).map((each) => `${each.kind}: ${each.message}`)
  const effects = (lines: readonly string[]): string[] =>
    lines.filter(
      (line) => !line.startsWith('effect_never_made') && !line.startsWith('opens_without'),
    )

  test('has nothing to say of transitions that a mirror does not need, nor of accepts where nothing is paid', () => {
    expect(
      said({ histories: [life] }).filter((line) => !line.startsWith('effect_never_made')),
    ).toEqual([])
    expect(said({ histories: [only], on: paid })).toEqual([
      expect.stringMatching(/^opens_without_accepts/),
    ])
  })

  test('says that one without histories is not checked', () => {
    expect(said({}).filter((line) => line.startsWith('not_checked'))).toHaveLength(1)
  })

  test('names a mirror of which no history has an event', () => {
    const histories = [{ name: 'paid', events: only.events.slice(-1) }]
    expect(effects(said({ histories, on: paid }))).toEqual([
      'never_looked: workflow "plans": no history of it has an event that its mirror of plan.created handles',
    ])
  })

  test('names what a history does not say of the objects', () => {
    const lines = said({ histories: [life], object: () => name('plan', 'other') })
    expect(lines).toContainEqual(
      expect.stringMatching(/history_fails.*does not say what plan other is at the provider/),
    )
  })

  test('names a gathering of which a history does not say what is found out', () => {
    const histories = [only]
    expect(effects(said({ histories, gathers: paid }))).toEqual([
      'gathered_unsaid: workflow "plans": history "whole" does not say what gather finds out for invoice.paid in_1: add it to gathered',
    ])
    const given = [{ ...only, gathered: { in_1: null } }]
    expect(effects(said({ histories: given, gathers: paid }))).toEqual([])
  })

  test('says when looks must be made for an order to end differently', () => {
    const greedy = ({ current }: { current: Plan | null }): unknown =>
      mirrored({
        to: current?.status ?? 'gone',
        effects: current?.status === 'past_due' ? [{ type: 'reminder' }] : [],
      })
    expect(said({ histories: [life], decide: greedy })).toContainEqual(
      expect.stringMatching(/not_confluent.*, and each look finds its object as the latest/),
    )
  })
})
