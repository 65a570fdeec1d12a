/**
 * Random lives of subscriptions, made of the transitions that Stripe permits: trial, payment, renewal, failure
 * and recovery (a circle), pause, other plans and quantities, scheduled and immediate ends, deletion.
 */
import type { Random } from '../../src/testing/stripe-double/random.ts'
import { Living, month, type Life, type LifePlace } from './subscription-living.ts'

type Move = (life: Living) => void

/** The moves out of each status, the likely ones more than once. */
const moves: Readonly<Record<string, readonly Move[]>> = {
  incomplete: [pays, pays, pays, expires],
  trialing: [pays, pays, fails, endsNow, pauses, changesSeats, changesPlan, schedules, reminds],
  active: [
    renews,
    renews,
    fails,
    fails,
    changesSeats,
    changesPlan,
    schedules,
    unschedules,
    endsNow,
    endsAsPlanned,
    refunds,
    touches,
  ],
  past_due: [recovers, recovers, recovers, givesUp, endsNow, changesSeats, touches],
  unpaid: [recovers, endsNow],
  paused: [resumes, resumes, endsNow],
  canceled: [disappears, refunds, rests, rests],
  incomplete_expired: [rests],
}

/** Draws a life. The same random numbers and place make the same one. */
export function planLife(random: Random, place: LifePlace): Life {
  const living = new Living(random, place)
  living.begin()
  // paid at once: Stripe tells both in the same second
  if (living.draft.status === 'incomplete' && random.chance(0.6)) pays(living)
  const most = random.integer(0, 8)
  for (let at = 0; at < most && !living.isGone; at++) {
    living.wait()
    const possible = moves[living.draft.status]
    if (possible === undefined) throw new Error(`no moves out of ${living.draft.status}`)
    random.pick(possible)(living)
  }
  return { account: place.account, id: place.id, org: place.org, steps: living.steps }
}

const updated = ['customer.subscription.updated']
const deleted = ['customer.subscription.deleted']

function pays(life: Living): void {
  if (life.draft.status === 'trialing')
    life.draft.periodStart = life.draft.trialEnd ?? life.draft.periodStart
  life.draft.status = 'active'
  life.draft.trialEnd = null
  life.earn(1900)
  life.step(updated)
}

function renews(life: Living): void {
  if (life.draft.cancelAtPeriodEnd) return endsAsPlanned(life)
  life.draft.periodStart += month
  life.earn(1900)
  life.step(updated)
}

function fails(life: Living): void {
  if (life.draft.cancelAtPeriodEnd) return endsAsPlanned(life)
  life.draft.periodStart = life.draft.trialEnd ?? life.draft.periodStart + month
  life.draft.trialEnd = null
  life.draft.status = 'past_due'
  life.step(life.random.chance(0.5) ? updated : [...updated, ...updated])
}

function recovers(life: Living): void {
  life.draft.status = 'active'
  life.earn(1900)
  life.step(updated)
}

function givesUp(life: Living): void {
  life.draft.status = life.random.chance(0.5) ? 'unpaid' : 'canceled'
  life.step(life.draft.status === 'unpaid' ? updated : deleted)
}

function pauses(life: Living): void {
  life.draft.status = 'paused'
  life.draft.trialEnd = null
  life.step(['customer.subscription.paused', ...updated])
}

function resumes(life: Living): void {
  life.draft.status = 'active'
  life.earn(1900)
  life.step(['customer.subscription.resumed', ...updated])
}

function changesSeats(life: Living): void {
  const [main] = life.draft.plans
  if (main?.name === 'team') main.quantity = life.random.integer(1, 9)
  life.step(updated)
}

function changesPlan(life: Living): void {
  const name = life.random.pick(['team', 'pro', 'yearly'] as const)
  life.draft.plans = [{ name, quantity: name === 'team' ? life.random.integer(1, 9) : 1 }]
  if (life.random.chance(0.5)) life.earn(700)
  life.step(updated)
}

function schedules(life: Living): void {
  if (life.random.chance(0.5)) life.draft.cancelAtPeriodEnd = true
  else life.draft.cancelAt = life.draft.periodStart + 20 * 86_400
  life.step(updated)
}

function unschedules(life: Living): void {
  life.draft.cancelAtPeriodEnd = false
  life.draft.cancelAt = null
  life.step(updated)
}

function endsNow(life: Living): void {
  life.draft.status = 'canceled'
  life.step(deleted)
}

function endsAsPlanned(life: Living): void {
  if (!life.draft.cancelAtPeriodEnd && life.draft.cancelAt === null) return touches(life)
  life.draft.status = 'canceled'
  life.step(deleted)
}

function expires(life: Living): void {
  life.draft.status = 'incomplete_expired'
  life.step(updated)
}

function refunds(life: Living): void {
  life.giveBack()
}

/** Told, and nothing that counts is other. */
function touches(life: Living): void {
  life.step(updated)
}

function reminds(life: Living): void {
  life.step(['customer.subscription.trial_will_end'])
}

function disappears(life: Living): void {
  life.vanish()
}

function rests(): void {
  // an end that stays
}
