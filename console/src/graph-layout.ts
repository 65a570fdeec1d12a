/**
 * Where the states of a workflow stand in its picture: in columns by their distance from the first state, so
 * that time runs to the right; what leads back runs below. Pure: the same graph gives the same picture.
 */

/** What the picture is of. */
export interface GraphInput {
  readonly states: readonly string[]
  readonly initial: string | null
  readonly edges: readonly { readonly from: string; readonly to: string }[]
}

/** A state's box. */
export interface PlacedState {
  readonly state: string
  /** Of its left upper corner. */
  readonly x: number
  readonly y: number
  readonly width: number
}

/** An edge as an SVG path, and where its label stands. */
export interface PlacedEdge {
  readonly from: string
  readonly to: string
  readonly path: string
  readonly labelX: number
  readonly labelY: number
}

/** The picture. */
export interface PlacedGraph {
  readonly width: number
  readonly height: number
  readonly states: readonly PlacedState[]
  readonly edges: readonly PlacedEdge[]
}

/** The height of a state's box. */
export const stateHeight = 32

const columnGap = 72
const rowGap = 20
const margin = 12

/** Places the states and draws the edges between them. */
export function layoutGraph(input: GraphInput): PlacedGraph {
  const columns = ordered(columnsOf(input), input.edges)
  const tallest = Math.max(1, ...columns.map((column) => column.length))
  const inner = tallest * (stateHeight + rowGap) - rowGap
  const boxes = new Map<string, PlacedState & { readonly column: number }>()
  let x = margin
  for (const [index, column] of columns.entries()) {
    const width = Math.max(72, ...column.map((state) => state.length * 7.4 + 30))
    const used = column.length * (stateHeight + rowGap) - rowGap
    for (const [row, state] of column.entries()) {
      const y = margin + (inner - used) / 2 + row * (stateHeight + rowGap)
      boxes.set(state, { state, x, y, width, column: index })
    }
    x += width + columnGap
  }
  const edges = input.edges.flatMap(({ from, to }) => {
    const [a, b] = [boxes.get(from), boxes.get(to)]
    return a === undefined || b === undefined || from === to ? [] : [{ from, to, ...drawn(a, b) }]
  })
  const top = Math.min(0, ...edges.map(({ top }) => top)) - (edges.length > 0 ? 2 : 0)
  const bottom = Math.max(inner + 2 * margin, ...edges.map(({ bottom: each }) => each + 6))
  return {
    width: Math.max(x - columnGap, ...edges.map(({ right }) => right)) + margin,
    height: bottom - top,
    states: [...boxes.values()].map(({ column: _, ...box }) => ({ ...box, y: box.y - top })),
    edges: edges.map(({ from, to, points, labelX, labelY }) => ({
      from,
      to,
      path: pathOf(points.map(([px, py]) => [px, py - top] as const)),
      labelX,
      labelY: labelY - top,
    })),
  }
}

/** By distance from the first state; what cannot be reached stands in a last column of its own. */
function columnsOf({ states, initial, edges }: GraphInput): string[][] {
  const distance = new Map<string, number>()
  let reached = [initial ?? states[0] ?? ''].filter((state) => states.includes(state))
  for (let steps = 0; reached.length > 0; steps += 1) {
    for (const state of reached) distance.set(state, steps)
    const from = new Set(reached)
    reached = [...new Set(edges.filter((edge) => from.has(edge.from)).map(({ to }) => to))].filter(
      (state) => states.includes(state) && !distance.has(state),
    )
  }
  const columns: string[][] = []
  const last = Math.max(-1, ...distance.values()) + 1
  for (const state of states) (columns[distance.get(state) ?? last] ??= []).push(state)
  return columns.filter((column) => column !== undefined)
}

/** Each column in the order of what leads into it, so that fewer edges cross. */
function ordered(columns: string[][], edges: GraphInput['edges']): string[][] {
  const done: string[][] = []
  for (const column of columns) {
    const before = done.at(-1) ?? []
    const weight = (state: string): number => {
      const rows = edges
        .filter((edge) => edge.to === state)
        .map(({ from }) => before.indexOf(from))
        .filter((row) => row >= 0)
      return rows.length === 0
        ? before.length
        : rows.reduce((sum, row) => sum + row, 0) / rows.length
    }
    done.push([...column].sort((a, b) => weight(a) - weight(b)))
  }
  return done
}

type Point = readonly [x: number, y: number]
type Box = PlacedState & { readonly column: number }

interface Drawn {
  readonly points: readonly Point[]
  readonly labelX: number
  readonly labelY: number
  readonly top: number
  readonly bottom: number
  readonly right: number
}

function drawn(a: Box, b: Box): Drawn {
  const half = stateHeight / 2
  const span = b.column - a.column
  if (span === 1) {
    const [x1, y1, x2, y2] = [a.x + a.width, a.y + half, b.x, b.y + half]
    const bend = (x2 - x1) / 2
    return curve([x1, y1], [x1 + bend, y1], [x2 - bend, y2], [x2, y2])
  }
  if (span === 0) {
    const down = b.y > a.y
    const right = Math.max(a.x + a.width, b.x + b.width)
    const reach = right + 12 + Math.abs(b.y - a.y) / 4
    return curve(
      [a.x + a.width, a.y + half + (down ? 6 : -6)],
      [reach, a.y + half],
      [reach, b.y + half],
      [b.x + b.width, b.y + half + (down ? -6 : 6)],
    )
  }
  // over what stands between, or back below it
  const over = span > 1
  const edge = over ? 0 : stateHeight
  const reach = 14 + 12 * Math.abs(span)
  const [x1, x2] = [a.x + a.width * (over ? 0.7 : 0.4), b.x + b.width * (over ? 0.3 : 0.6)]
  const [y1, y2] = [a.y + edge, b.y + edge]
  const level = over ? Math.min(y1, y2) - reach : Math.max(y1, y2) + reach
  return curve([x1, y1], [x1 + (over ? 20 : -20), level], [x2 + (over ? -20 : 20), level], [x2, y2])
}

function curve(from: Point, one: Point, two: Point, to: Point): Drawn {
  const middle = (at: 0 | 1): number => (from[at] + 3 * one[at] + 3 * two[at] + to[at]) / 8
  const ys = [from[1], to[1], middle(1)]
  return {
    points: [from, one, two, to],
    labelX: middle(0),
    labelY: middle(1),
    top: Math.min(...ys),
    bottom: Math.max(...ys),
    right: Math.max(from[0], to[0], middle(0)),
  }
}

function pathOf(points: readonly Point[]): string {
  const [from, ...rest] = points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`)
  return `M${from}C${rest.join(' ')}`
}
