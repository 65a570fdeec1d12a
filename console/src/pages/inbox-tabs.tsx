/** The three views of what came in: requests, what they were, and what was not let in. */
import type { ReactNode } from 'react'
import { Tabs } from '../components/page.tsx'
import { linkTo } from '../links.ts'

const tabs = [
  { to: linkTo('events'), name: 'Events' },
  { to: linkTo('deliveries'), name: 'Requests' },
  { to: linkTo('rejections'), name: 'Rejected' },
]

/** The tabs of the inbox. */
export function InboxTabs({
  current,
}: {
  current: 'events' | 'deliveries' | 'rejections'
}): ReactNode {
  return <Tabs label="Inbox" tabs={tabs} current={linkTo(current)} />
}
