import { describe, expect, it } from 'vitest'
import { defineUntypedWorkflow } from '../../src/workflow/define-workflow.ts'
import { graph } from '../../src/report/graph.ts'

describe('graph', () => {
  it('draws states, transitions, ends and which states entitle', () => {
    const workflow = defineUntypedWorkflow('license', {
      sources: ['stripe'],
      initial: 'pending',
      states: { pending: {}, paid: { entitles: true }, refunded: {} },
      transitions: { pending: ['paid'], paid: ['refunded'] },
      effects: {},
    })
    expect(graph(workflow)).toBe(
      [
        '---',
        'title: license',
        '---',
        'stateDiagram-v2',
        '  [*] --> pending',
        '  pending --> paid',
        '  paid --> refunded',
        '  refunded --> [*]',
        '  classDef entitles stroke-width:3px',
        '  class paid entitles',
      ].join('\n'),
    )
  })

  it('gives an alias to names that Mermaid would misread', () => {
    const workflow = defineUntypedWorkflow('w', {
      sources: ['stripe'],
      initial: 'a-b',
      states: { 'a-b': {}, a_b: {}, end: {} },
      transitions: { 'a-b': ['end'], a_b: ['end'] },
      effects: {},
    })
    const text = graph(workflow)
    expect(text).toContain('state "a-b" as s0__a_b')
    expect(text).toContain('state "end" as s2__end')
    expect(text).toContain('s0__a_b --> s2__end')
    expect(text).toContain('  a_b --> s2__end')
  })
})
