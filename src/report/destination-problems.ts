/**
 * What is wrong with destinations, in words: one that cannot be used as configured, one that operations go
 * to and nobody configures, one that is left alone since it fails. Pure.
 */
import type { DestinationStatus } from './destinations.ts'

/** What is known of a configured destination. */
export interface ConfiguredDestination {
  /** Why it cannot be used as configured. */
  readonly problem?: string | undefined
}

/** One line for each problem. */
export function destinationProblems(
  configured: ReadonlyMap<string, ConfiguredDestination>,
  present: readonly DestinationStatus[],
): string[] {
  const unusable = [...configured].flatMap(([name, { problem }]) =>
    problem === undefined ? [] : [`destination "${name}" cannot be used: ${problem}`],
  )
  const others = present.flatMap((each) => {
    const name = `destination "${each.destination}"`
    const open = each.pending + each.sending + each.uncertain
    const unknown =
      open > 0 && !configured.has(each.destination)
        ? [
            `${name} is not configured, and operations to it are not sent (${open}): configure it again`,
          ]
        : []
    const paused =
      each.closed_until === null
        ? []
        : [
            `${name} is left alone until ${each.closed_until}: it failed ${each.failures} times in a row`,
          ]
    return [...unknown, ...paused]
  })
  return [...unusable, ...others]
}
