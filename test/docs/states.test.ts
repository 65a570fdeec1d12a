import { describe, expect, it } from 'vitest'
import { credits } from '../../examples/shop/credits.ts'
import { license } from '../../examples/shop/license.ts'
import { saas } from '../../examples/saas/saas.ts'
import { graph } from '../../src/report/graph.ts'
import { grantWorkflow } from '../../src/workflow/grant-workflow.ts'
import { isFinal, type OutcomeKind } from '../../src/workflow/outcome.ts'
import { blocks, page, section, tableRows } from './pages.ts'

const states = page('docs/reference/states.md')

describe('docs/reference/states.md', () => {
  it.each([license, credits, saas])(
    "shows what graph prints for the demo's workflow $name",
    (workflow) => {
      const diagrams = blocks(states).filter((each) => each.language === 'mermaid')
      expect(diagrams.map((each) => each.text.trim())).toContain(graph(workflow))
    },
  )

  it('shows the built-in workflow of what is given away', () => {
    expect(section(states.text, 'The built-in workflow')).toContain(graph(grantWorkflow))
  })

  it.each([license, saas])('explains every state of $name', ({ name, states: declared }) => {
    const explained = tableRows(section(states.text, name)).map(([state]) => state)
    expect(explained.sort()).toEqual([...declared.keys()].sort())
  })

  it('says of every kind of decision whether it is final', () => {
    for (const [kind = '', final] of tableRows(section(states.text, 'Decisions'))) {
      expect([kind, final]).toEqual([kind, isFinal(kind as OutcomeKind) ? 'yes' : 'no'])
    }
  })

  it('draws the same states of an event as the table explains', () => {
    const drawn = new Set(
      [...section(states.text, 'Events').matchAll(/^ {2}(\w+) --> (\w+)/gm)].flatMap(
        ([, from = '', to = '']) => [from, to],
      ),
    )
    const explained = tableRows(section(states.text, 'Events')).map(([state]) => state)
    expect(explained.sort()).toEqual([...drawn].sort())
  })
})
