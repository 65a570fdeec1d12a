import { it } from 'vitest'
import { playDeadly, type Deadly } from '../support/deadly-events.ts'

it.each<Deadly>([
  { deadly: 'memory', nodeOptions: ['--max-old-space-size=96'], ending: 'SIGABRT' },
  // the watchdog's thread ends what does not turn any more
  { deadly: 'loop', nodeOptions: [], ending: 'SIGKILL' },
])(
  'an event that ends its process by $deadly is dead after three lone starts, and all others flow',
  playDeadly,
)
