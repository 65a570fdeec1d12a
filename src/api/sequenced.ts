/** Which destinations of the configuration take the operations of an order one after the other. */
import type { HookledgerParts } from '../compose/parts.ts'

/** Their names: what comes after an unfinished operation there is told as blocked. */
export function sequencedOf({ config }: Pick<HookledgerParts, 'config'>): ReadonlySet<string> {
  const sequenced = [...config.destinations].filter(
    ([, { contract }]) => contract.sequence === 'order',
  )
  return new Set(sequenced.map(([name]) => name))
}
