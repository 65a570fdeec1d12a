/**
 * Randomness that can be repeated: the same seed gives the same numbers on every machine, so a run that
 * failed can be run again from the seed that it printed.
 */
import { createHash } from 'node:crypto'

/** A stream of numbers that depends on its seed only. */
export interface Random {
  /** A number from 0 (included) to 1 (excluded). */
  next(): number
  /** An integer between both bounds, both included. */
  integer(from: number, to: number): number
  /** True with the given probability (0 to 1). */
  chance(probability: number): boolean
  /** One of the items; the list must not be empty. */
  pick<T>(items: readonly T[]): T
  /** A shuffled copy. */
  shuffle<T>(items: readonly T[]): T[]
  /** A stream of its own under a name: drawing from it leaves this one as it is. */
  fork(name: string): Random
}

/**
 * A stream of numbers from a seed of any kind.
 *
 * @example createRandom('demo').integer(1, 6)
 */
export function createRandom(seed: string | number): Random {
  const words = createHash('sha256').update(String(seed)).digest()
  let a = words.readInt32LE(0)
  let b = words.readInt32LE(4)
  let c = words.readInt32LE(8)
  let counter = 1

  // "Small fast counter" generator (sfc32): 128 bits of state, passes the usual statistical batteries.
  function next(): number {
    const mixed = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + mixed) | 0
    return (mixed >>> 0) / 4294967296
  }
  for (let round = 0; round < 12; round++) next()

  const random: Random = {
    next,
    integer: (from, to) => from + Math.floor(next() * (to - from + 1)),
    chance: (probability) => next() < probability,
    pick: (items) => {
      if (items.length === 0) throw new RangeError('cannot pick from an empty list')
      return items[Math.floor(next() * items.length)]!
    },
    shuffle: (items) => {
      const copy = [...items]
      for (let last = copy.length - 1; last > 0; last--) {
        const other = Math.floor(next() * (last + 1))
        const moved = copy[last]!
        copy[last] = copy[other]!
        copy[other] = moved
      }
      return copy
    },
    fork: (name) => createRandom(`${seed}/${name}`),
  }
  return random
}
