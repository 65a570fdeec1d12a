import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { subscriptionStates } from '../../src/providers/stripe-subscription/states.ts'
import { blocks, page, root, section, tableRows } from './pages.ts'

const guide = page('docs/guides/subscriptions.md')
const shown = new Map(blocks(guide).map((block) => [block.file, block.text]))
const example = join(root, 'examples/saas')

describe('docs/guides/subscriptions.md', () => {
  it.each(readdirSync(example))('shows the example as it is: %s', (file) => {
    expect(shown.get(file)).toBe(readFileSync(join(example, file), 'utf8'))
  })

  it('says of every status of Stripe what becomes of access', () => {
    const told = tableRows(section(guide.text, 'What is sold, and to whom'))
      .flatMap(([status = '']) => status.split(', '))
      .filter((status) => /^[a-z_]+$/.test(status))
    const statuses = Object.keys(subscriptionStates.states)
    for (const status of statuses.filter((each) => each !== 'unseen' && each !== 'gone'))
      expect(told).toContain(status)
  })
})
