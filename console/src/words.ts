/** Names of the wire as words, and what each state means to somebody who looks at it. */

/** How loud a state is: nothing to do, under way, look at it, act. */
export type Tone = 'calm' | 'good' | 'busy' | 'warn' | 'bad'

const tones: Readonly<Record<string, Tone>> = {
  // events
  pending: 'busy',
  deferred: 'warn',
  processed: 'good',
  ignored: 'calm',
  dead: 'bad',
  // deliveries
  new: 'good',
  duplicate: 'calm',
  // operations
  sending: 'busy',
  sent: 'good',
  uncertain: 'bad',
  canceled: 'calm',
  discarded: 'calm',
  // findings
  open: 'bad',
  repairing: 'busy',
  closed: 'good',
  dismissed: 'calm',
  lag: 'warn',
  contradiction: 'bad',
  // decisions
  fulfilled: 'good',
  moved: 'good',
  reversed: 'warn',
  absorbed: 'calm',
  skipped: 'calm',
  contradicted: 'bad',
  opened: 'calm',
  adopted: 'calm',
  // runs and bulk acts
  running: 'busy',
  planned: 'calm',
  waiting_approval: 'warn',
  complete: 'good',
  done: 'good',
  failed: 'bad',
  rejected: 'calm',
  // severities
  high: 'bad',
  medium: 'warn',
  low: 'calm',
  critical: 'bad',
  warning: 'warn',
}

/** The tone of a state; calm for one that is not known here (a workflow's own). */
export function toneOf(state: string): Tone {
  return tones[state] ?? 'calm'
}

/** `waiting_approval` → `waiting approval`. */
export function wordsOf(name: string): string {
  return name.replaceAll('_', ' ')
}

/** The first letter large: for headings made from a name. */
export function sentence(name: string): string {
  const text = wordsOf(name)
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
