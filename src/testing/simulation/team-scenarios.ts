/**
 * What happens to the subscriptions of organizations. Dealt in turn, so that two dozen organizations hold every
 * situation that subscriptions have to be followed through.
 */
import type { Random } from '../stripe-double/random.ts'
import type { TeamLife } from './team-life.ts'

/** What happens to an organization's subscription. */
export type TeamScenario =
  | 'monthly'
  | 'upgraded'
  | 'more_seats'
  | 'in_trial'
  | 'trial_paid'
  | 'trial_past_due'
  | 'recovered'
  | 'past_due_too_long'
  | 'unpaid'
  | 'lost_for_good'
  | 'leaving'
  | 'left'
  | 'stayed'
  | 'canceled'
  | 'paused'
  | 'resumed'
  | 'first_refunded'
  | 'partly_refunded'
  | 'refund_returned'
  | 'disputed'
  | 'never_paid'
  | 'paid_late'
  | 'two_subscriptions'

const plans: Readonly<Record<TeamScenario, (life: TeamLife, random: Random) => TeamLife>> = {
  monthly: (life) => life.begin({ periods: 2 }).renew().renew(),
  upgraded: (life, random) =>
    life
      .begin({ plan: 'pro_monthly', periods: 1 })
      .renew()
      .changePlan('team_monthly', random.integer(4, 9)),
  more_seats: (life, random) =>
    life.begin({ seats: 2 }).changeSeats(random.integer(5, 9), 'invoice').changeSeats(4, 'none'),
  in_trial: (life) => life.begin({ trialDays: 30, sinceDays: 6 }),
  trial_paid: (life) => life.begin({ periods: 1, trialDays: 14 }).renew(),
  trial_past_due: (life) => life.begin({ periods: 1, trialDays: 14, sinceDays: 1 }).renew('failed'),
  recovered: (life) => life.begin({ periods: 2 }).renew('failed').retry('paid').renew(),
  past_due_too_long: (life) =>
    life.begin({ periods: 1, sinceDays: 9 }).renew('failed').retry('failed'),
  unpaid: (life) => life.begin({ periods: 1 }).renew('failed').giveUp('unpaid'),
  lost_for_good: (life) => life.begin({ periods: 1 }).renew('failed').giveUp('canceled'),
  leaving: (life) => life.begin({ periods: 1 }).renew().cancelAtPeriodEnd(),
  left: (life) => life.begin({ periods: 1 }).cancelAtPeriodEnd().renew(),
  stayed: (life) => life.begin().cancelAtPeriodEnd().cancelAtPeriodEnd(false),
  canceled: (life) => life.begin({ periods: 1 }).renew().cancelNow(),
  paused: (life) => life.begin().pause(),
  resumed: (life) => life.begin({ periods: 1 }).pause().resume(),
  first_refunded: (life) => life.begin({ periods: 2 }).renew().refundFirst().renew(),
  partly_refunded: (life) => life.begin({ periods: 1 }).renew().refundFirst(700),
  refund_returned: (life) => life.begin({ periods: 1 }).refundFirst().renew().refundFails(),
  disputed: (life) => life.begin({ periods: 1 }).renew().disputeFirst().disputeEnds('lost'),
  never_paid: (life) => life.begin({ outcome: 'failed' }).expire(),
  paid_late: (life) => life.begin({ outcome: 'failed' }).retry('paid'),
  two_subscriptions: (life) =>
    life.begin({ seats: 3 }).begin({ seats: 4 }).begin({ plan: 'pro_monthly' }),
}

/** All of them, in the order in which they are dealt. */
export const teamScenarios: readonly TeamScenario[] = Object.keys(plans) as TeamScenario[]

/** The scenario of the `at`-th organization. */
export function teamScenario(at: number): TeamScenario {
  return teamScenarios[at % teamScenarios.length]!
}

/** Plans what happens to an organization. */
export function planTeam(scenario: TeamScenario, life: TeamLife, random: Random): TeamLife {
  return plans[scenario](life, random)
}
