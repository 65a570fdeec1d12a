/** Where each kind of thing is shown. Every link of the page comes from here. */
import { fillPath, queryText } from './paths.ts'

/** The pages, by what they show; `:name` is a parameter. */
export const pagePaths = Object.freeze({
  overview: '/',
  search: '/search',
  events: '/inbox',
  deliveries: '/inbox/deliveries',
  rejections: '/inbox/rejections',
  event: '/events/:source/:event_id',
  orders: '/orders',
  order: '/orders/:order_id',
  workflows: '/workflows',
  workflow: '/workflows/:name',
  subjects: '/subjects',
  subject: '/subjects/:subject',
  ledger: '/ledger',
  ledger_list: '/ledger/:list',
  outbox: '/outbox',
  operation: '/operations/:operation_id',
  reconciliation: '/reconciliation',
  findings: '/findings',
  finding: '/findings/:finding_id',
  bulk: '/bulk',
  bulk_act: '/bulk/:bulk_id',
  grant: '/grant',
  promises: '/promises',
  audit: '/audit-log',
  sessions: '/sessions',
} as const)

/** A page's name. */
export type PageName = keyof typeof pagePaths

/** The address of a page, below the console's base. */
export function linkTo(
  page: PageName,
  params: Readonly<Record<string, string>> = {},
  query: Readonly<Record<string, string | number | boolean | null | undefined>> = {},
): string {
  return fillPath(pagePaths[page], params) + queryText(query)
}

/** The address of what the API names by kind and id; an event by `source/event_id`. Null: it has no page. */
export function linkOf(kind: string, id: string): string | null {
  switch (kind) {
    case 'order':
      return linkTo('order', { order_id: id })
    case 'subject':
      return linkTo('subject', { subject: id })
    case 'operation':
      return linkTo('operation', { operation_id: id })
    case 'finding':
      return linkTo('finding', { finding_id: id })
    case 'workflow':
      return linkTo('workflow', { name: id })
    case 'bulk':
    case 'bulk_act':
      return linkTo('bulk_act', { bulk_id: id })
    case 'destination':
      return linkTo('outbox', {}, { destination: id })
    case 'source':
      return linkTo('events', {}, { source: id })
    case 'event': {
      const slash = id.indexOf('/')
      if (slash < 1) return linkTo('search', {}, { q: id })
      return linkTo('event', { source: id.slice(0, slash), event_id: id.slice(slash + 1) })
    }
    default:
      return null
  }
}
