/** The workflow of an order with the way that it took: what happened is drawn over what could happen. */
import type { ReactNode } from 'react'
import type { Answer } from '../../api.ts'
import { Moment } from '../../components/moment.tsx'
import { Section } from '../../components/page.tsx'
import { Read } from '../../components/read.tsx'
import { countOf } from '../../figures.ts'
import { layoutGraph, stateHeight, type PlacedEdge } from '../../graph-layout.ts'
import { useGet } from '../../use-api.ts'
import { visibleText } from '../../visible-text.ts'

type Graph = Answer<'GET /orders/{order_id}/graph'>
type Transition = Graph['transitions'][number]

/** A transition; without figures it is only possible. */
type Line = Pick<Transition, 'from' | 'to'> & Partial<Transition>

/** The section; a picture of its own request, since the page is told without it. */
export function OrderGraph({ id }: { id: string }): ReactNode {
  const read = useGet('GET /orders/{order_id}/graph', { params: { order_id: id } }, { refresh: 15 })
  return (
    <Section
      title="Its way through the workflow"
      note={
        read.data?.is_configured === false
          ? 'This workflow is not in the configuration: only what was taken is known.'
          : undefined
      }
    >
      <Read of={read}>{(data) => <Picture graph={data} />}</Read>
    </Section>
  )
}

function Picture({ graph }: { graph: Graph }): ReactNode {
  const { transitions, path } = graph
  const shown = shownOf(graph)
  const way = path.map(({ to }) => to).join(', then ')
  return (
    <>
      <Drawing
        label={`The order is ${graph.current}; it was ${way}`}
        graph={{ ...graph, transitions: shown }}
      />
      {shown.length < transitions.length && (
        <p className="muted">
          {countOf(transitions.length - shown.length, 'more transition is', 'more transitions are')}{' '}
          possible between these states.
        </p>
      )}
      <Way path={path} omitted={graph.omitted_steps} />
    </>
  )
}

/** States and transitions as a picture; of an order with what was visited and taken. */
export function Drawing({
  label,
  graph: { states, transitions, initial },
}: {
  label: string
  graph: {
    readonly states: readonly {
      readonly state: string
      readonly entitles: boolean
      readonly visits?: number
      readonly is_current?: boolean
    }[]
    readonly transitions: readonly Line[]
    readonly initial: string | null
  }
}): ReactNode {
  const placed = layoutGraph({
    states: states.map(({ state }) => state),
    initial,
    edges: transitions,
  })
  return (
    <div className="graph" tabIndex={0} role="group" aria-label="The workflow">
      <svg
        width={placed.width}
        height={placed.height}
        viewBox={`0 0 ${placed.width} ${placed.height}`}
        role="img"
        aria-label={label}
      >
        <Arrows />
        {inOrder(placed.edges, transitions).map((edge) => (
          <Edge key={`${edge.from} ${edge.to}`} edge={edge} of={transitionOf(transitions, edge)} />
        ))}
        {placed.states.map(({ state, x, y, width }) => {
          const of = states.find((each) => each.state === state)
          return (
            <g
              key={state}
              className="graph-state"
              data-now={of?.is_current || undefined}
              data-been={(of?.visits ?? 0) > 0 || undefined}
              data-entitles={of?.entitles || undefined}
            >
              <rect x={x} y={y} width={width} height={stateHeight} rx={7} />
              <text x={x + width / 2} y={y + stateHeight / 2}>
                {visibleText(state)}
              </text>
            </g>
          )
        })}
      </svg>
    </div>
  )
}

/** So many lines can be told apart; of more, what happened is shown, how it began, and what could come next. */
const most = 16

function shownOf({ transitions, initial, current }: Graph): readonly Transition[] {
  if (transitions.length <= most) return transitions
  const happened = transitions.filter(({ taken, refused }) => taken > 0 || refused > 0)
  const others = transitions.filter(
    (each) => !happened.includes(each) && (each.from === initial || each.from === current),
  )
  return [...happened, ...others.slice(0, Math.max(0, most - happened.length))]
}

const kinds = ['taken', 'refused', 'possible'] as const

function Arrows(): ReactNode {
  return (
    <defs>
      {kinds.map((kind) => (
        <marker
          key={kind}
          id={`arrow-${kind}`}
          className="graph-arrow"
          data-kind={kind}
          viewBox="0 0 8 8"
          refX={7}
          refY={4}
          markerWidth={8}
          markerHeight={8}
          markerUnits="userSpaceOnUse"
          orient="auto"
        >
          <path d="M0 0.5 7.5 4 0 7.5z" />
        </marker>
      ))}
    </defs>
  )
}

function Edge({ edge, of }: { edge: PlacedEdge; of: Line | undefined }): ReactNode {
  const { taken = 0, refused = 0, is_declared: declared = true } = of ?? {}
  const kind = taken > 0 ? 'taken' : refused > 0 ? 'refused' : 'possible'
  const label = [taken > 1 ? `${taken} ×` : '', refused > 0 ? `${refused} × refused` : '']
    .filter((each) => each !== '')
    .join(', ')
  return (
    <g className="graph-edge" data-kind={kind} data-undeclared={!declared || undefined}>
      <path d={edge.path} markerEnd={`url(#arrow-${kind})`} />
      {label !== '' && (
        <text x={edge.labelX} y={edge.labelY - 5}>
          {label}
        </text>
      )}
    </g>
  )
}

function Way({ path, omitted }: { path: Graph['path']; omitted: number }): ReactNode {
  return (
    <ol className="way" aria-label="The way it took">
      {omitted > 0 && <li className="muted">{omitted} older steps</li>}
      {path.map(({ at, to, kind, decision_id: id }) => (
        <li key={id}>
          <strong>{visibleText(to)}</strong>{' '}
          <span className="muted">
            {kind}, <Moment at={at} />
          </span>
        </li>
      ))}
    </ol>
  )
}

/** What was taken is drawn last, over the rest. */
function inOrder(edges: readonly PlacedEdge[], transitions: readonly Line[]): PlacedEdge[] {
  const taken = (edge: PlacedEdge): number => transitionOf(transitions, edge)?.taken ?? 0
  return edges.toSorted((a, b) => Math.sign(taken(a)) - Math.sign(taken(b)))
}

function transitionOf(transitions: readonly Line[], { from, to }: PlacedEdge): Line | undefined {
  return transitions.find((each) => each.from === from && each.to === to)
}
