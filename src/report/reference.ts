/** A thing that has a page of its own, by what it is and its id. */

/** What it is: an event's id is `source/event_id`, since other providers may give the same one. */
export interface Reference {
  readonly kind: 'order' | 'event' | 'operation' | 'finding' | 'subject' | 'workflow'
  readonly id: string
}

/** An event as a reference. */
export function eventReference(event: {
  readonly source: string
  readonly event_id: string
}): Reference {
  return { kind: 'event', id: `${event.source}/${event.event_id}` }
}
