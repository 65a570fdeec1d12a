/** How each stage stands: its name for people, where its unfinished things are, and how bad it is. */
import { groupedText } from '../../figures.ts'
import { linkTo } from '../../links.ts'
import { durationText } from '../../moments.ts'
import type { Tone } from '../../words.ts'
import type { Overview } from '../overview.tsx'
import type { Stage } from './stages.tsx'

type Given = Overview['stages'][number]

const told: Readonly<
  Record<Given['stage'], { readonly name: string; readonly to: string; readonly dead: string }>
> = {
  inbox: { name: 'Inbox', to: linkTo('events', {}, { state: 'pending' }), dead: 'dead' },
  waiting: { name: 'Waiting', to: linkTo('events', {}, { state: 'deferred' }), dead: 'dead' },
  gathering: { name: 'Asking providers', to: linkTo('events'), dead: 'failing' },
  outbox: { name: 'Outbox', to: linkTo('outbox', {}, { state: 'unfinished' }), dead: 'dead' },
  findings: { name: 'Findings', to: linkTo('findings'), dead: 'dead' },
  reconciliation: { name: 'Reconciliation', to: linkTo('reconciliation'), dead: 'failed' },
}

/** Older than this is late, in milliseconds; waiting and findings have deadlines of their own. */
const late: Readonly<Partial<Record<Given['stage'], number>>> = {
  inbox: 60_000,
  gathering: 300_000,
  outbox: 300_000,
}

/** The stages in the order in which an event goes through them. */
export function stagesOf({ stages }: Pick<Overview, 'stages'>): Stage[] {
  return stages.map((given) => {
    const { name, to, dead } = told[given.stage]
    return {
      name,
      to: given.stage === 'inbox' && given.dead > 0 ? linkTo('events', {}, { state: 'dead' }) : to,
      age: ageOf(given),
      about: aboutOf(given),
      tone: toneOf(given),
      notes: [
        ...note(given.dead, dead, 'bad'),
        ...note(given.uncertain, 'uncertain', 'bad'),
        ...note(given.overdue, given.stage === 'reconciliation' ? 'behind' : 'overdue', 'warn'),
      ],
    }
  })
}

function ageOf({ unfinished, oldest_age_ms: age }: Given): string {
  if (age !== null) return durationText(age)
  return unfinished === 0 ? 'clear' : 'on time'
}

/** The age of reconciliation is that of what was looked at last; of all others, of the oldest unfinished. */
function aboutOf({ stage, unfinished }: Given): string {
  if (stage === 'reconciliation')
    return unfinished === 0 ? 'since the checkpoint' : `${groupedText(unfinished)} to verify`
  return unfinished === 0 ? 'nothing waits' : `${groupedText(unfinished)} unfinished`
}

function toneOf({ stage, unfinished, overdue, oldest_age_ms: age }: Given): Tone {
  if (overdue > 0) return 'warn'
  const limit = late[stage]
  if (limit !== undefined && (age ?? 0) > limit) return 'warn'
  return unfinished === 0 ? 'good' : 'calm'
}

function note(count: number, word: string, tone: Tone): Stage['notes'] {
  return count === 0 ? [] : [{ text: `${groupedText(count)} ${word}`, tone }]
}
