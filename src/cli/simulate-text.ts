/** The summary of a simulation, and what to try next. */
import type { StatusReport } from '../report/status.ts'
import type { EffectCount } from '../report/summary.ts'
import { isAfterTheWork, mailFaults, type MailFault } from '../testing/mail-double/mail-faults.ts'
import type { SimulationCounts } from '../testing/simulation/simulation-report.ts'
import type { Style } from './output.ts'
import type { MailReport, MailService } from './simulate-mail.ts'
import type { ReconciliationReport } from './simulate-reconciliation.ts'
import type { TeamsReport } from './simulate-teams.ts'
import { columns, duration, plural } from './table.ts'

/** What a simulation came to; the keys are what `--json` prints. */
export interface SimulationReport {
  readonly counts: SimulationCounts
  readonly elapsed_ms: number
  readonly now: StatusReport
  readonly effects: readonly EffectCount[]
  /** The organizations' subscriptions; null where nobody subscribed. */
  readonly teams: TeamsReport | null
  readonly emails: MailReport
  readonly reconciliation: ReconciliationReport
  /** Orders about which the database and the provider's own objects disagree, one line each; what was tampered with apart. */
  readonly differences: readonly string[]
  readonly audit: {
    readonly holds: boolean
    readonly broken: readonly string[]
    /** What it found that open findings name already. */
    readonly known: number
  }
  /** Orders of the run that are worth an `explain`. */
  readonly examples: readonly string[]
  /** Where the emails can be looked at; null where they went elsewhere. */
  readonly emails_url: string | null
}

/** The summary for a person. `program` is how the command line is called here. */
export function simulationText(report: SimulationReport, program: string, style: Style): string {
  return [
    '',
    style.strong('What happened'),
    columns([
      ...whatCame(report),
      ...whatBecame(report, style),
      ...whatWasFound(report, style),
      ...whatHolds(report, style),
    ]),
    '',
    style.strong('Try next'),
    columns(nextThings(report, program)),
    '',
  ].join('\n')
}

function whatCame({ counts, now, elapsed_ms: elapsedMs }: SimulationReport): string[][] {
  const { total, duplicates } = now.deliveries
  // what a pass found before, or instead of, a delivery
  const listed = now.events.total - (total - duplicates)
  const organizations =
    counts.organizations === 0 ? '' : `, ${plural(counts.organizations, 'organization')}`
  return [
    [
      '  simulated',
      `${counts.orders} orders and ${counts.subscriptions} subscriptions of the shop${organizations} in ${duration(elapsedMs)}`,
    ],
    [
      '  sent',
      `${counts.deliveries} deliveries of ${counts.events} events: ${counts.duplicatedEvents} sent twice or more, ${counts.reordered} out of order`,
    ],
    [
      '  duplicates',
      `${duplicates} absorbed: ${total} deliveries${listed === 0 ? '' : ` and ${plural(listed, 'record')} of the provider`} became ${now.events.total} events`,
    ],
  ]
}

function whatBecame({ now, effects, teams, emails }: SimulationReport, style: Style): string[][] {
  const states = now.orders.map(
    (each) =>
      `${each.orders} ${each.state}${each.workflow === 'license' ? '' : ` (${each.workflow})`}`,
  )
  return [
    ['  orders', list(states)],
    [
      '  effects',
      `${list(effects.map((each) => `${each.effects} ${each.effect_type}`))}, each exactly once`,
    ],
    ['  entitlements', `${now.entitlements.active} active`],
    ...(teams === null ? [] : teamLines(teams)),
    ['  emails', emailsText(emails, style)],
    ...(emails.service === null
      ? []
      : [
          ['  mail faults', faultsText(emails.service)],
          ['  called again', `${plural(emails.service.absorbed, 'duplicate')} absorbed by the key`],
        ]),
  ]
}

/** How the subscriptions were followed: what was asked, and what that makes. */
function teamLines(teams: TeamsReport): string[][] {
  const states = Object.entries(teams.states).map(([state, count]) => `${count} ${state}`)
  return [
    [
      '  subscriptions',
      `${teams.subscriptions} of ${plural(teams.organizations, 'organization')}: ${list(states)}; ${plural(teams.seats, 'seat')}, ${plural(teams.credits, 'credit')}`,
    ],
    [
      '  looked at',
      `${plural(teams.hints, 'event')} said "look again": ${plural(teams.requests, 'request')} to the provider`,
    ],
  ]
}

/** What went wrong on purpose, and what reconciliation made of it. */
function whatWasFound({ now, reconciliation }: SimulationReport, style: Style): string[][] {
  const { lost, recovered, missing, tampered, passes, calls, records, complete } = reconciliation
  const open = (name: 'lag' | 'contradiction'): string[] =>
    now.findings.filter((each) => each.class === name).map((each) => `${each.open} ${each.kind}`)
  const seen = tampered.filter((each) => each.finding_id !== null).length
  const contradictions = open('contradiction')
  const lag = open('lag')
  return [
    [
      '  reconciled',
      complete
        ? `${plural(passes, 'pass')} over the provider's own records: ${records} records in ${plural(calls, 'call')}`
        : style.bad(`no pass has looked at all of it yet: hookledger status`),
    ],
    [
      '  lag',
      missing.length === 0
        ? `${plural(lost, 'event')} dropped for good: ${style.good(`${recovered} repaired by themselves`)}, from the provider's own records`
        : style.bad(`${missing.length} of ${plural(lost, 'dropped event')} missing`),
    ],
    ...(tampered.length === 0
      ? []
      : [
          [
            '  tampered with',
            `${plural(tampered.length, 'order')} changed by SQL: ${seen === tampered.length ? style.good('every one found') : style.bad(`${seen} found`)}`,
          ],
        ]),
    [
      '  contradictions',
      contradictions.length === 0 ? 'none' : `${list(contradictions)}: they wait for a person`,
    ],
    [
      '  waiting',
      lag.length === 0 && now.waiting.events === 0
        ? 'nothing'
        : list([
            ...(now.waiting.events === 0
              ? []
              : [`${plural(now.waiting.events, 'event')} for what has not come yet`]),
            ...lag.map((each) => `${each} (lag)`),
          ]),
    ],
    ['  dead', now.events.dead === 0 ? 'nothing' : style.bad(`${now.events.dead} events`)],
  ]
}

function whatHolds(
  { differences, teams, emails, audit, reconciliation }: SimulationReport,
  style: Style,
): string[][] {
  const all = [...differences, ...(teams?.differences ?? []), ...emails.differences]
  const known =
    audit.known === 0 ? '' : `; ${plural(audit.known, 'row')} that open findings name already`
  return [
    [
      '  compared',
      all.length === 0
        ? style.good(agreed(teams, reconciliation, emails))
        : style.bad(differing(all)),
    ],
    [
      '  audit',
      audit.holds
        ? style.good(`every promise holds${known}`)
        : style.bad(`broken: ${list(audit.broken)}`),
    ],
  ]
}

/** `312 operations, 371 calls, 312 arrived, each exactly once`. */
function emailsText({ operations, calls, states, service, differences }: MailReport, style: Style) {
  const begun = `${plural(operations, 'operation')}, ${plural(calls, 'call')}`
  if (service === null) {
    const others = Object.entries(states).filter(([state]) => state !== 'sent')
    const arrived = `${begun}, ${states['sent'] ?? 0} arrived by what was answered`
    return [arrived, ...others.map(([state, count]) => style.bad(`${count} ${state}`))].join(', ')
  }
  const arrived = `${begun}, ${service.arrived} arrived`
  return differences.length === 0 ? `${arrived}, each exactly once` : style.bad(arrived)
}

const faultTexts: Readonly<Record<MailFault, string>> = {
  rate_limited: 'times 429',
  failed_before: 'times 500',
  reset_before: 'cut lines',
  failed_after: 'times 500',
  answer_lost: 'lost answers',
  timed_out: 'timeouts',
}

/** What the mail service did to its callers: from where they stand, most of it looks alike. */
function faultsText({ faults }: MailService): string {
  const met = (isAfter: boolean): string =>
    list(
      mailFaults
        .filter((fault) => isAfterTheWork(fault) === isAfter && faults[fault] !== undefined)
        .map((fault) => `${faults[fault]} ${faultTexts[fault]}`),
    )
  return `before the work ${met(false)}; after it ${met(true)}`
}

const shownDifferences = 5

function agreed(
  teams: TeamsReport | null,
  { tampered }: ReconciliationReport,
  { service }: MailReport,
): string {
  const orders = tampered.length === 0 ? 'every order' : 'every other order'
  const subscriptions = teams === null ? '' : ' and every subscription'
  const emails = service === null ? '' : ", every email is in the mail service's own log once"
  return `${orders}${subscriptions} is what the provider's own records say${emails}`
}

function differing(differences: readonly string[]): string {
  const more =
    differences.length > shownDifferences
      ? ` and ${differences.length - shownDifferences} more`
      : ''
  return `${differences.slice(0, shownDifferences).join('; ')}${more}`
}

function nextThings(
  { examples, teams, emails_url: emailsUrl, reconciliation }: SimulationReport,
  program: string,
): string[][] {
  const [first = '1001', second, third] = examples
  const tampered = reconciliation.tampered.find((each) => each.finding_id !== null)
  const finding = tampered?.finding_id?.slice(0, 8)
  return [
    [`  ${program} explain ${first}`, 'the whole story of an order that was paid twice'],
    ...(second === undefined
      ? []
      : [[`  ${program} explain ${second}`, 'one that was refunded in parts']]),
    ...(third === undefined
      ? []
      : [[`  ${program} explain ${third}`, 'one that paid less than it costs']]),
    ...(teams === null || teams.example === null
      ? []
      : [[`  ${program} explain ${teams.example}`, 'a subscription, and each look at it']]),
    [`  ${program} status`, 'how much is in which state'],
    [`  ${program} findings`, 'what differs, and who answers for it'],
    ...(tampered === undefined || finding === undefined
      ? []
      : [
          [
            `  ${program} repair plan ${finding}`,
            `what would set order ${tampered.order_id} right again`,
          ],
          [
            `  ${program} repair apply ${finding} --reason "changed by hand"`,
            'do it, on the record',
          ],
        ]),
    [`  ${program} reconcile`, 'ask the provider again: it changes nothing'],
    [`  ${program} audit`, 'every promise as a query'],
    [`  ${program} outbox list --state sent`, 'what was sent, and in how many calls'],
    ...(emailsUrl === null ? [] : [[`  curl ${emailsUrl}`, 'the emails as they arrived']]),
    [
      `  ${program} send stripe checkout.session.completed --order demo-1 --times 3`,
      'one order, delivered three times; the provider knows no such payment: a finding',
    ],
    [`  kill -9 ${process.pid}, then start again`, 'it goes on where it was'],
  ]
}

function list(parts: readonly string[]): string {
  return parts.length === 0 ? 'none' : parts.join(', ')
}
