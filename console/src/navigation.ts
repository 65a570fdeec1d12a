/** The pages that stand in the navigation, in the order in which a problem is looked into. */
import type { IconName } from './components/icons.tsx'
import { linkTo, pagePaths } from './links.ts'
import type { Permission } from './session.tsx'

/** An entry. */
export interface NavigationEntry {
  readonly text: string
  readonly to: string
  readonly icon: IconName
  /** The paths that belong to it: it is marked on all pages below them. */
  readonly within: readonly string[]
  /** Left out for those who have it not. */
  readonly needs?: Permission
}

/** The groups; the first has no name. */
export const navigationGroups: readonly {
  readonly name: string
  readonly entries: readonly NavigationEntry[]
}[] = [
  {
    name: '',
    entries: [{ text: 'Overview', to: pagePaths.overview, icon: 'overview', within: ['/'] }],
  },
  {
    name: 'Look',
    entries: [
      { text: 'Inbox', to: pagePaths.events, icon: 'inbox', within: ['/inbox', '/events'] },
      { text: 'Orders', to: pagePaths.orders, icon: 'orders', within: ['/orders'] },
      { text: 'Subjects', to: pagePaths.subjects, icon: 'subject', within: ['/subjects'] },
      { text: 'Ledger', to: pagePaths.ledger, icon: 'ledger', within: ['/ledger'] },
      { text: 'Outbox', to: pagePaths.outbox, icon: 'outbox', within: ['/outbox', '/operations'] },
    ],
  },
  {
    name: 'Compare',
    entries: [
      {
        text: 'Reconciliation',
        to: pagePaths.reconciliation,
        icon: 'reconciliation',
        within: ['/reconciliation'],
      },
      {
        text: 'Findings',
        // who looks here at night looks for what is open
        to: linkTo('findings', {}, { state: 'unfinished' }),
        icon: 'findings',
        within: ['/findings'],
      },
    ],
  },
  {
    name: 'Act',
    entries: [
      { text: 'Bulk acts', to: pagePaths.bulk, icon: 'bulk', within: ['/bulk'] },
      {
        text: 'Grant',
        to: pagePaths.grant,
        icon: 'grant',
        within: ['/grant'],
        needs: 'operate',
      },
    ],
  },
  {
    name: 'Record',
    entries: [
      { text: 'Promises', to: pagePaths.promises, icon: 'check', within: ['/promises'] },
      { text: 'Workflows', to: pagePaths.workflows, icon: 'workflow', within: ['/workflows'] },
      { text: 'Audit log', to: pagePaths.audit, icon: 'audit', within: ['/audit-log'] },
      {
        text: 'Sessions',
        to: pagePaths.sessions,
        icon: 'session',
        within: ['/sessions'],
        needs: 'administer',
      },
    ],
  },
]
