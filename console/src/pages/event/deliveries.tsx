/** The requests that brought an event: the first one counts, all others were absorbed. */
import type { ReactNode } from 'react'
import type { Column } from '../../components/data-table.tsx'
import { Moment } from '../../components/moment.tsx'
import { Rows } from '../../components/rows.tsx'
import { StateBadge } from '../../components/state-badge.tsx'
import { countOf } from '../../figures.ts'
import type { EventRecord } from '../event.tsx'

type Delivery = EventRecord['deliveries'][number] & { readonly first: boolean }

const columns: readonly Column<Delivery>[] = [
  { head: 'Received', cell: (delivery) => <Moment at={delivery.received_at} show="both" /> },
  {
    head: 'It was',
    cell: ({ first }) => <StateBadge quiet state={first ? 'new' : 'duplicate'} />,
  },
  {
    head: 'Body',
    cell: ({ same_body: same }) =>
      same ? 'the same bytes' : <strong className="bad">other bytes: not used</strong>,
  },
  {
    head: 'SHA-256',
    wide: true,
    cell: ({ body_sha256: hash }) => <span className="id-text muted">{hash}</span>,
  },
]

/** The requests; `total` counts also those that are not listed. */
export function Deliveries({
  deliveries,
  total,
}: {
  deliveries: EventRecord['deliveries']
  total: number
}): ReactNode {
  const rows = deliveries.map((delivery, index) => ({ ...delivery, first: index === 0 }))
  return (
    <Rows
      title="Requests that brought it"
      aside={countOf(total, 'request')}
      none="None: it did not come by a webhook."
      columns={columns}
      rows={rows}
      keyOf={({ delivery_id: id }) => id}
    />
  )
}
