/** Which page is shown at which address. A page is a component that is given the address's parameters. */
import type { ComponentType } from 'react'
import { pagePaths, type PageName } from './links.ts'
import { AuditLogPage } from './pages/audit-log.tsx'
import { BulkActPage } from './pages/bulk-act.tsx'
import { BulkPage } from './pages/bulk.tsx'
import { DeliveriesPage } from './pages/deliveries.tsx'
import { EventPage } from './pages/event.tsx'
import { EventsPage } from './pages/events.tsx'
import { FindingPage } from './pages/finding.tsx'
import { FindingsPage } from './pages/findings.tsx'
import { GrantPage } from './pages/grant.tsx'
import { LedgerPage } from './pages/ledger.tsx'
import { OperationPage } from './pages/operation.tsx'
import { OrderPage } from './pages/order.tsx'
import { OrdersPage } from './pages/orders.tsx'
import { OutboxPage } from './pages/outbox.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { PromisesPage } from './pages/promises.tsx'
import { ReconciliationPage } from './pages/reconciliation.tsx'
import { RejectionsPage } from './pages/rejections.tsx'
import { SearchPage } from './pages/search.tsx'
import { SessionsPage } from './pages/sessions.tsx'
import { SubjectPage } from './pages/subject.tsx'
import { SubjectsPage } from './pages/subjects.tsx'
import { WorkflowPage, WorkflowsPage } from './pages/workflow.tsx'
import { matchPath, type PathParams } from './paths.ts'

/** What every page is given. */
export interface PageProps {
  /** Of its address, decoded: `params['order_id']`. */
  readonly params: PathParams
}

const pages: Readonly<Record<PageName, ComponentType<PageProps>>> = {
  overview: OverviewPage,
  search: SearchPage,
  events: EventsPage,
  deliveries: DeliveriesPage,
  rejections: RejectionsPage,
  event: EventPage,
  orders: OrdersPage,
  order: OrderPage,
  workflows: WorkflowsPage,
  workflow: WorkflowPage,
  subjects: SubjectsPage,
  subject: SubjectPage,
  ledger: LedgerPage,
  ledger_list: LedgerPage,
  outbox: OutboxPage,
  operation: OperationPage,
  reconciliation: ReconciliationPage,
  findings: FindingsPage,
  finding: FindingPage,
  bulk: BulkPage,
  bulk_act: BulkActPage,
  grant: GrantPage,
  promises: PromisesPage,
  sessions: SessionsPage,
  audit: AuditLogPage,
}

/** The page at a raw path below the base; null: there is none. */
export function pageAt(
  path: string,
): { readonly page: ComponentType<PageProps>; readonly params: PathParams } | null {
  for (const [name, page] of Object.entries(pages)) {
    const params = matchPath(pagePaths[name as PageName], path)
    if (params !== null) return { page, params }
  }
  return null
}
