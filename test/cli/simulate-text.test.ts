import { describe, expect, it } from 'vitest'
import type { MailReport } from '../../src/cli/simulate-mail.ts'
import type { ReconciliationReport } from '../../src/cli/simulate-reconciliation.ts'
import type { TeamsReport } from '../../src/cli/simulate-teams.ts'
import { simulationText, type SimulationReport } from '../../src/cli/simulate-text.ts'

const plain = (text: string): string => text
const style = { good: plain, bad: plain, warning: plain, strong: plain, faint: plain }

const emails: MailReport = {
  operations: 3,
  states: { sent: 3 },
  calls: 6,
  service: { arrived: 3, absorbed: 1, faults: { rate_limited: 1, failed_before: 1, timed_out: 1 } },
  differences: [],
}

const reconciliation: ReconciliationReport = {
  lost: 0,
  recovered: 0,
  missing: [],
  tampered: [],
  passes: 1,
  calls: 9,
  records: 12,
  repaired: 0,
  complete: true,
}

const now = {
  orders: [],
  deliveries: { total: 4, duplicates: 1 },
  events: { total: 3, dead: 0 },
  entitlements: { active: 3 },
  waiting: { events: 0 },
  findings: [],
}

function summary(
  more: Partial<MailReport> = {},
  url: string | null = 'http://x/emails',
  others: object = {},
): string {
  const report = {
    counts: { orders: 3, subscriptions: 0, organizations: 0, deliveries: 4, events: 3 },
    elapsed_ms: 1000,
    now,
    effects: [],
    teams: null,
    emails: { ...emails, ...more },
    reconciliation,
    differences: [],
    audit: { holds: true, broken: [], known: 0 },
    examples: [],
    emails_url: url,
    ...others,
  }
  return simulationText(report as unknown as SimulationReport, 'hookledger', style)
}

describe('the summary of a simulation', () => {
  it('says how many operations, calls and arrivals there were, what went wrong and what the key was good for', () => {
    const text = summary()
    expect(text).toMatch(/^ {2}emails +3 operations, 6 calls, 3 arrived, each exactly once$/m)
    expect(text).toMatch(
      /^ {2}mail faults +before the work 1 times 429, 1 times 500; after it 1 timeouts$/m,
    )
    expect(text).toMatch(/^ {2}called again +1 duplicate absorbed by the key$/m)
    expect(text).toMatch(/^ {2}compared +.*, every email is in the mail service's own log once$/m)
    expect(text).toContain('curl http://x/emails')
  })

  it('does not say "once" where ledger and mail service disagree, and says where', () => {
    const text = summary({ differences: ['email op-1 of order 1001 is sent, but arrived 2 times'] })
    expect(text).toMatch(/^ {2}emails +3 operations, 6 calls, 3 arrived$/m)
    expect(text).toMatch(/^ {2}compared +email op-1 of order 1001 is sent, but arrived 2 times$/m)
  })

  it('goes by what was answered where the emails went elsewhere', () => {
    const text = summary({ service: null, states: { sent: 2, dead: 1 } }, null)
    expect(text).toMatch(
      /^ {2}emails +3 operations, 6 calls, 2 arrived by what was answered, 1 dead$/m,
    )
    expect(text).not.toContain('mail faults')
    expect(text).not.toContain('mail service')
    expect(text).not.toContain('curl')
  })

  const teams: TeamsReport = {
    organizations: 2,
    subscriptions: 3,
    states: { active: 2, past_due: 1 },
    seats: 9,
    credits: 140,
    hints: 31,
    requests: 12,
    example: 'sub_1',
    differences: [],
  }

  it('says what the subscriptions of organizations are, and what it took to know', () => {
    const text = summary({}, null, { teams })
    expect(text).toMatch(
      /^ {2}subscriptions +3 of 2 organizations: 2 active, 1 past_due; 9 seats, 140 credits$/m,
    )
    expect(text).toMatch(
      /^ {2}looked at +31 events said "look again": 12 requests to the provider$/m,
    )
    expect(text).toMatch(
      /^ {2}compared +every order and every subscription is what the provider's/m,
    )
  })

  it('says where a subscription is not what the provider says', () => {
    const differences = ['org-1001 may use: 2 team, the provider says nothing']
    const text = summary({}, null, { teams: { ...teams, differences } })
    expect(text).toMatch(/^ {2}compared +org-1001 may use: 2 team, the provider says nothing$/m)
  })

  it('says what was dropped for good and came back by itself, and what waits for a person', () => {
    const finding = 'a1b320ef-9b60-5a6a-8318-142cfa86b199'
    const tampered = [{ order_id: '1007', trick: 'state_changed', finding_id: finding }]
    const text = summary({}, null, {
      reconciliation: { ...reconciliation, lost: 31, recovered: 31, passes: 4, tampered },
      now: { ...now, events: { total: 40, dead: 0 } },
      audit: { holds: true, broken: [], known: 2 },
    })
    expect(text).toMatch(/^ {2}reconciled +4 passes over the provider's own records: 12 records/m)
    expect(text).toMatch(
      /^ {2}lag +31 events dropped for good: 31 repaired by themselves, from the provider's/m,
    )
    expect(text).toMatch(
      /^ {2}duplicates +1 absorbed: 4 deliveries and 37 records of the provider became 40 events$/m,
    )
    expect(text).toMatch(/^ {2}tampered with +1 order changed by SQL: every one found$/m)
    expect(text).toMatch(/^ {2}compared +every other order is what the provider's own/m)
    expect(text).toMatch(
      /^ {2}audit +every promise holds; 2 rows that open findings name already$/m,
    )
    expect(text).toContain('hookledger repair plan a1b320ef')
    expect(text).toMatch(/^ {2}hookledger reconcile +ask the provider again: it changes nothing$/m)
  })

  it('does not call found what is not', () => {
    const tampered = [{ order_id: '1007', trick: 'state_changed', finding_id: null }]
    const missing = ['evt_1', 'evt_2']
    const text = summary({}, null, {
      reconciliation: { ...reconciliation, lost: 9, missing, tampered, complete: false },
      audit: { holds: false, broken: ['effect_twice'], known: 0 },
    })
    expect(text).toMatch(/^ {2}reconciled +no pass has looked at all of it yet/m)
    expect(text).toMatch(/^ {2}lag +2 of 9 dropped events missing$/m)
    expect(text).toMatch(/^ {2}tampered with +1 order changed by SQL: 0 found$/m)
    expect(text).toMatch(/^ {2}audit +broken: effect_twice$/m)
    expect(text).not.toContain('repair plan')
  })
})
