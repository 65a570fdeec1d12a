/** The few pictures of the page, drawn on a grid of 16. They say nothing by themselves: text stands beside. */
import type { ReactNode } from 'react'

const paths = {
  overview: 'M2.5 9.5 6 6l2.5 2.5L13.5 3.5M2.5 13h11',
  orders: 'M3.5 2.5h9v11l-2-1.3-2.5 1.3-2.5-1.3-2 1.3zM6 6h4M6 8.7h4',
  inbox: 'M2.5 9.5v3.5h11V9.5M2.5 9.5 4.5 3h7l2 6.5M2.5 9.5h3l1 1.5h3l1-1.5h3',
  outbox: 'M13.5 2.5 2.5 7l4.2 1.9M13.5 2.5 9.3 13.5 6.7 8.9M13.5 2.5 6.7 8.9',
  findings: 'M8 2.5 14 13.2H2zM8 6.5v3M8 11.2v.2',
  reconciliation: 'M2.5 6h9.5M9.5 3.5 12 6 9.5 8.5M13.5 10.5H4M6.5 8 4 10.5 6.5 13',
  ledger:
    'M3.5 2.5h7.5a1.5 1.5 0 0 1 1.5 1.5v9.5H5a1.5 1.5 0 0 1-1.5-1.5zM3.5 12A1.5 1.5 0 0 1 5 10.5h7.5M6.2 5.5h3.6',
  subject:
    'M8 8.2a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.4M3 13.5c.6-2.3 2.5-3.5 5-3.5s4.4 1.2 5 3.5',
  bulk: 'M3 4h10M3 8h10M3 12h6M11 12l1.2 1.2L14.5 11',
  grant: 'M8 3v10M3 8h10',
  audit: 'M8 2.5 13 4.4v3.4c0 2.9-2 4.9-5 5.9-3-1-5-3-5-5.9V4.4zM5.8 8l1.6 1.6 2.9-3',
  workflow:
    'M4 6.2a1.9 1.9 0 1 0 0-3.8 1.9 1.9 0 0 0 0 3.8M12 13.6a1.9 1.9 0 1 0 0-3.8 1.9 1.9 0 0 0 0 3.8M4 6.2v3a2.5 2.5 0 0 0 2.5 2.5h3.6',
  session: 'M5 7V5a3 3 0 0 1 6 0v2M3.5 7h9v6.5h-9z',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9M10.3 10.3l3.2 3.2',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  close: 'M4 4l8 8M12 4l-8 8',
  refresh: 'M13 8a5 5 0 1 1-1.5-3.6M13 2.5v2.6h-2.6',
  sun: 'M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6M8 1.8v1.4M8 12.8v1.4M1.8 8h1.4M12.8 8h1.4M3.6 3.6l1 1M11.4 11.4l1 1M12.4 3.6l-1 1M4.6 11.4l-1 1',
  moon: 'M13 9.6A5.5 5.5 0 0 1 6.4 3 5.5 5.5 0 1 0 13 9.6',
  system: 'M2.5 3h11v7.5h-11zM5.5 13.5h5M8 10.5v3',
  copy: 'M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z',
  check: 'M3 8.5 6.5 12 13 4.5',
  right: 'M6 3.5 10.5 8 6 12.5',
  left: 'M10 3.5 5.5 8l4.5 4.5',
  download: 'M8 2.5v7.5M5 7.5 8 10.5l3-3M3 13.5h10',
  alert: 'M8 14a6 6 0 1 0 0-12 6 6 0 0 0 0 12M8 5v3.5M8 10.8v.2',
  clock: 'M8 14a6 6 0 1 0 0-12 6 6 0 0 0 0 12M8 4.8V8l2.2 1.5',
  person:
    'M8 8.2a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.4M3 13.5c.6-2.3 2.5-3.5 5-3.5s4.4 1.2 5 3.5',
  eye: 'M1.8 8S4 3.8 8 3.8 14.2 8 14.2 8 12 12.2 8 12.2 1.8 8 1.8 8M8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6',
} as const

/** A picture's name. */
export type IconName = keyof typeof paths

/** A picture in the color and size of the text around it. */
export function Icon({ name }: { name: IconName }): ReactNode {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  )
}
