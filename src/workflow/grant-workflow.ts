/**
 * The built-in workflow `grant`: what support gives away is an order like any other, so that nobody is
 * entitled without a decision that says why, by whom, and until when. No event leads into it.
 */
import type { Workflow } from './workflow.ts'

/** The state of a grant that holds; it entitles. */
export const grantedState = 'granted'

/** The state of a grant that somebody ended; it entitles to nothing. */
export const endedState = 'ended'

/** The workflow of what is given away. Its name is reserved. */
export const grantWorkflow: Workflow = Object.freeze({
  name: 'grant',
  sources: Object.freeze([]),
  initial: grantedState,
  opens: 'app',
  states: new Map([
    [grantedState, Object.freeze({ entitles: true })],
    [endedState, Object.freeze({})],
  ]),
  transitions: new Map([[grantedState, Object.freeze([endedState])]]),
  effects: new Map(),
  destinations: undefined,
  handlers: new Map(),
  version: 'built-in',
  compare: undefined,
  accepts: undefined,
  histories: undefined,
})
