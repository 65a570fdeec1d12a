/** Which destinations of a configuration take the operations of an order one after the other. */
import type { Parts } from './project.ts'

/** Their names. */
export function sequencedOf({ config }: Pick<Parts, 'config'>): ReadonlySet<string> {
  const sequenced = [...config.destinations].filter(
    ([, { contract }]) => contract.sequence === 'order',
  )
  return new Set(sequenced.map(([name]) => name))
}
