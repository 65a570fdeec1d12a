/**
 * Figures over time. Painted by uPlot in the colors of the theme; what it shows is told in words beside it, and
 * the legend names the values at the pointer, or the sums where nothing is pointed at.
 */
import { useEffect, useRef, useState } from 'react'
import type { ReactNode } from 'react'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { groupedText, shortCount } from '../figures.ts'
import { clockText } from '../moments.ts'
import { usePaintedTheme } from '../theme.ts'

/** One line of a chart. */
export interface Series {
  readonly name: string
  /** The first is the accent; `quiet` ones are gray, `bad` red. */
  readonly tone: 'accent' | 'ink' | 'quiet' | 'warn' | 'bad'
  /** One value for each time; null is a gap. */
  readonly values: readonly (number | null)[]
}

/** What a chart shows. */
export interface ChartProps {
  readonly label: string
  /** Unix milliseconds, rising. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  /** `sum`: counts, told as their sum; `last`: a level, told as its last value. */
  readonly told?: 'sum' | 'last'
  readonly height?: number
  /** Text of a value; grouped digits where nothing is given. */
  format?(value: number): string
}

/** The chart with its legend. */
export function Chart(props: ChartProps): ReactNode {
  const { label, times, series, told = 'sum', height = 168, format = groupedText } = props
  const [at, setAt] = useState<number | null>(null)
  const frame = useChart(props, height, setAt)
  const figures = series.map(({ name, tone, values }) => ({
    name,
    tone,
    text: textAt(values, at, told, format),
  }))
  const time = at === null ? undefined : times[at]
  const summary = figures.map(({ name, text }) => `${name} ${text}`).join(', ')
  return (
    <figure className="chart">
      <figcaption className="chart-legend">
        {figures.map(({ name, tone, text }) => (
          <span key={name} className="chart-key" data-tone={tone}>
            {name} <strong>{text}</strong>
          </span>
        ))}
        <span className="chart-time">{time === undefined ? '' : clockText(new Date(time))}</span>
      </figcaption>
      <div
        ref={frame}
        className="chart-frame"
        style={{ height }}
        role="img"
        aria-label={`${label}: ${summary}`}
      />
    </figure>
  )
}

function useChart(
  { times, series }: ChartProps,
  height: number,
  setAt: (at: number | null) => void,
): React.RefObject<HTMLDivElement | null> {
  const frame = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | null>(null)
  const theme = usePaintedTheme()
  const shape = JSON.stringify(series.map(({ name, tone }) => [name, tone]))
  const data = dataOf(times, series)
  const newest = useRef(data)
  newest.current = data
  useEffect(() => {
    const element = frame.current
    if (element === null) return
    const tones = JSON.parse(shape) as [string, Series['tone']][]
    const made = new UPlot(optionsOf(tones, element, height, setAt), newest.current, element)
    plot.current = made
    const observer = new ResizeObserver(() =>
      made.setSize({ width: Math.max(element.clientWidth, 120), height }),
    )
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
      plot.current = null
    }
  }, [shape, theme, height, setAt])
  useEffect(() => plot.current?.setData(dataOf(times, series)), [times, series])
  return frame
}

function dataOf(times: readonly number[], series: readonly Series[]): UPlot.AlignedData {
  return [times.map((time) => time / 1000), ...series.map(({ values }) => [...values])]
}

function optionsOf(
  tones: readonly [string, Series['tone']][],
  element: HTMLElement,
  height: number,
  setAt: (at: number | null) => void,
): UPlot.Options {
  const style = getComputedStyle(element)
  const color = (name: string): string => {
    // a canvas takes resolved colors only
    element.style.color = `var(--${name})`
    const resolved = style.color
    element.style.color = ''
    return resolved
  }
  const axis: UPlot.Axis = {
    stroke: color('muted'),
    font: `11px ${style.fontFamily}`,
    grid: { stroke: color('line'), width: 1 },
    ticks: { show: false },
  }
  return {
    width: Math.max(element.clientWidth, 120),
    height,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { points: { size: 6 }, drag: { x: false, y: false }, y: false },
    scales: { y: { range: (_plot, _low, high) => [0, Math.max(high * 1.1, 4)] } },
    axes: [
      { ...axis, size: 26, space: 70, values: (_plot, splits) => timeTicks(splits) },
      { ...axis, size: 44, space: 36, values: (_plot, splits) => splits.map(shortCount) },
    ],
    series: [
      {},
      ...tones.map(([label, tone]) => ({
        label,
        stroke: color(`chart-${tone}`),
        width: tone === 'quiet' ? 1 : 1.5,
        points: { show: false },
        ...(tone === 'accent' && { fill: color('chart-fill') }),
      })),
    ],
    hooks: { setCursor: [({ cursor }) => setAt(cursor.idx ?? null)] },
  }
}

function timeTicks(splits: readonly number[]): string[] {
  const wide = (splits.at(-1) ?? 0) - (splits[0] ?? 0) > 2 * 86_400
  return splits.map((seconds) => {
    const text = clockText(new Date(seconds * 1000))
    return wide ? text.slice(5, 10) : text.slice(11, 16)
  })
}

function textAt(
  values: readonly (number | null)[],
  at: number | null,
  told: 'sum' | 'last',
  format: (value: number) => string,
): string {
  if (at !== null) {
    const value = values[at] ?? null
    return value === null ? '—' : format(value)
  }
  if (told === 'last') return format(values.findLast((value) => value !== null) ?? 0)
  return format(values.reduce<number>((sum, value) => sum + (value ?? 0), 0))
}
