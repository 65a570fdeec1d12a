/**
 * What became of the organizations' subscriptions of a simulation: what the database says of states, access,
 * seats and credits, compared with the simulated provider's own objects as they are at that moment.
 */
import type { Database } from '../postgres/executor.ts'
import { expectedTeams, type ExpectedTeam } from '../testing/simulation/expected-teams.ts'
import type { StripeVerbs } from '../testing/stripe-double/verbs.ts'

/** What became of them; the keys are what `--json` prints. */
export interface TeamsReport {
  readonly organizations: number
  readonly subscriptions: number
  /** Of the subscriptions, by state. */
  readonly states: Readonly<Record<string, number>>
  /** Seats of all organizations together, and their credits. */
  readonly seats: number
  readonly credits: number
  /** Events that only said "look again", and how often the provider was asked because of them. */
  readonly hints: number
  readonly requests: number
  /** The subscription that was looked at most often; null where none was. */
  readonly example: string | null
  /** Where the database and the provider disagree, one line each. */
  readonly differences: readonly string[]
}

/** What an organization has by the database. */
interface FoundTeam {
  readonly entitlements: ReadonlyMap<string, number>
  readonly credits: number
  readonly receipts: number
  readonly refunds: number
}

/** The ids of the subscriptions of these organizations. */
export function subscriptionsOf(double: StripeVerbs, organizations: readonly string[]): string[] {
  return expectedTeams(double, 0, new Set(organizations)).subscriptions.map((each) => each.id)
}

/** Reports on the subscriptions of these organizations; null where there are none. */
export async function reportTeams(
  db: Database,
  double: StripeVerbs,
  organizations: readonly string[],
): Promise<TeamsReport | null> {
  if (organizations.length === 0) return null
  const expected = expectedTeams(double, Date.now(), new Set(organizations))
  const ids = expected.subscriptions.map((each) => each.id)
  const orders = await db.query<{ order_id: string; state: string }>({
    text: `select order_id, state from ${db.schema}orders where order_id = any ($1::text[]) and workflow = 'saas'`,
    values: [ids],
  })
  const found = await foundTeams(db, organizations, ids)
  const states: Record<string, number> = {}
  for (const { state } of orders) states[state] = (states[state] ?? 0) + 1
  const stateOf = new Map(orders.map((row) => [row.order_id, row.state]))
  const teams = [...found.values()]
  return {
    organizations: organizations.length,
    subscriptions: ids.length,
    states,
    seats: sum(teams.map((team) => team.entitlements.get('team') ?? 0)),
    credits: sum(teams.map((team) => team.credits)),
    ...(await lookFigures(db, ids)),
    differences: [
      ...expected.subscriptions.flatMap(({ id, org, state }) => {
        const here = stateOf.get(id) ?? 'not here'
        return here === state
          ? []
          : [`subscription ${id} of ${org} is ${here}, the provider says ${state}`]
      }),
      ...expected.teams.flatMap((team) => differencesOf(team, found.get(team.org)!)),
    ],
  }
}

function differencesOf(expected: ExpectedTeam, found: FoundTeam): string[] {
  const { org } = expected
  const pairs: [string, string, string][] = [
    ['may use', listed(found.entitlements), listed(expected.entitlements)],
    ['has credits', String(found.credits), String(expected.credits)],
    ['got receipts', String(found.receipts), String(expected.receipts)],
    ['got refunds', String(found.refunds), String(expected.refunds)],
  ]
  return pairs
    .filter(([, here, there]) => here !== there)
    .map(([what, here, there]) => `${org} ${what}: ${here}, the provider says ${there}`)
}

function listed(entitlements: ReadonlyMap<string, number>): string {
  const parts = [...entitlements].map(([name, quantity]) => `${quantity} ${name}`)
  return parts.length === 0 ? 'nothing' : parts.sort().join(', ')
}

async function foundTeams(
  db: Database,
  organizations: readonly string[],
  ids: readonly string[],
): Promise<Map<string, FoundTeam>> {
  const s = db.schema
  const entitled = await db.query<{ org: string; entitlement: string; quantity: string }>({
    text: `select substr(subject, 5) as org, entitlement, quantity::text as quantity
      from ${s}current_entitlements where subject = any ($1::text[])`,
    values: [organizations.map((org) => `org:${org}`)],
  })
  const credited = await db.query<{ org: string; credits: string }>({
    text: `select org, credits::text as credits from saas.credits where org = any ($1::text[])`,
    values: [organizations],
  })
  const effects = await db.query<{ org: string; receipts: string; refunds: string }>({
    text: `select f.data ->> 'org' as org, count(*) filter (where f.effect_type = 'credits')::text as receipts,
        count(*) filter (where f.effect_type = 'refund' and not exists (
          select 1 from ${s}fulfillment_effects r where r.order_id = f.order_id
            and r.effect_type = 'refund:reversed' and r.effect_reference = f.effect_reference))::text as refunds
      from ${s}fulfillment_effects f where f.order_id = any ($1::text[]) and f.data ->> 'org' is not null group by 1`,
    values: [ids],
  })
  return new Map(
    organizations.map((org) => {
      const own = entitled.filter((row) => row.org === org)
      const counted = effects.find((row) => row.org === org)
      return [
        org,
        {
          entitlements: new Map(own.map((row) => [row.entitlement, Number(row.quantity)])),
          credits: Number(credited.find((row) => row.org === org)?.credits ?? 0),
          receipts: Number(counted?.receipts ?? 0),
          refunds: Number(counted?.refunds ?? 0),
        },
      ]
    }),
  )
}

async function lookFigures(
  db: Database,
  ids: readonly string[],
): Promise<Pick<TeamsReport, 'hints' | 'requests' | 'example'>> {
  const s = db.schema
  const [row] = await db.query<{ hints: string; requests: string; example: string | null }>({
    text: `select
        (select count(*) from ${s}decisions where order_id = any ($1::text[]) and evidence ? 'fetch') as hints,
        (select coalesce(sum(sent), 0) from ${s}mirrored_objects where order_id = any ($1::text[])) as requests,
        (select order_id from ${s}mirrored_objects where order_id = any ($1::text[])
          order by sent desc, order_id limit 1) as example`,
    values: [ids],
  })
  return {
    hints: Number(row?.hints ?? 0),
    requests: Number(row?.requests ?? 0),
    example: row?.example ?? null,
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
