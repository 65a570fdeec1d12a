import { describe, expect, it } from 'vitest'
import type { MailReport } from '../../src/cli/simulate-mail.ts'
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

function summary(more: Partial<MailReport> = {}, url: string | null = 'http://x/emails'): string {
  const report = {
    counts: { orders: 3, subscriptions: 0, deliveries: 4, events: 3 },
    elapsed_ms: 1000,
    now: {
      orders: [],
      deliveries: { total: 4, duplicates: 1 },
      events: { total: 3, dead: 0 },
      entitlements: { active: 3 },
      waiting: { events: 0 },
      findings: [],
    },
    effects: [],
    emails: { ...emails, ...more },
    differences: [],
    audit: { holds: true, broken: [] },
    examples: [],
    emails_url: url,
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
})
