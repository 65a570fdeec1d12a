import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { layoutGraph, stateHeight } from '../../console/src/graph-layout.ts'

const license = {
  states: ['pending', 'paid', 'canceled', 'refunded'],
  initial: 'pending',
  edges: [
    { from: 'pending', to: 'paid' },
    { from: 'pending', to: 'canceled' },
    { from: 'canceled', to: 'paid' },
    { from: 'paid', to: 'refunded' },
    { from: 'refunded', to: 'paid' },
  ],
}

const graphs = fc
  .uniqueArray(fc.stringMatching(/^[a-z]{1,12}$/), { minLength: 1, maxLength: 12 })
  .chain((states) => {
    const state = fc.constantFrom(...states)
    return fc.record({
      states: fc.constant(states),
      initial: fc.option(state),
      edges: fc.array(fc.record({ from: state, to: state }), { maxLength: 30 }),
    })
  })

describe('layoutGraph', () => {
  it('runs to the right from the first state', () => {
    const { states } = layoutGraph(license)
    const x = new Map(states.map((each) => [each.state, each.x]))
    expect(x.get('pending')).toBeLessThan(x.get('paid') ?? 0)
    expect(x.get('paid')).toBe(x.get('canceled'))
    expect(x.get('paid')).toBeLessThan(x.get('refunded') ?? 0)
  })

  it('places every state once, inside the picture, and none over another one', () => {
    fc.assert(
      fc.property(graphs, (graph) => {
        const { states, width, height } = layoutGraph(graph)
        expect(states.map(({ state }) => state).sort()).toEqual([...graph.states].sort())
        for (const one of states) {
          expect(one.x).toBeGreaterThanOrEqual(0)
          expect(one.y).toBeGreaterThanOrEqual(0)
          expect(one.x + one.width).toBeLessThanOrEqual(width)
          expect(one.y + stateHeight).toBeLessThanOrEqual(height)
          for (const other of states) {
            if (one === other) continue
            const apart =
              one.x + one.width <= other.x ||
              other.x + other.width <= one.x ||
              one.y + stateHeight <= other.y ||
              other.y + stateHeight <= one.y
            expect(apart).toBe(true)
          }
        }
      }),
    )
  })

  it('draws every edge but one from a state to itself, with numbers only in its path', () => {
    fc.assert(
      fc.property(graphs, (graph) => {
        const { edges } = layoutGraph(graph)
        expect(edges).toHaveLength(graph.edges.filter(({ from, to }) => from !== to).length)
        for (const { path } of edges) expect(path).toMatch(/^M-?[\d.]+ -?[\d.]+C[-\d. ]+$/)
      }),
    )
  })
})
