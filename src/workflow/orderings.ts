/** Orders in which things can come: all of them, or a seeded sample that is the same every time. */

/** A number in [0, 1), the next of a sequence. */
export type Random = () => number

/** The same sequence for the same seed (mulberry32): reproducible, and good for nothing secret. */
export function seededRandom(seed: number): Random {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

/** Every order of the numbers below `count`, the natural one first. */
export function* permutations(count: number): Generator<readonly number[]> {
  const order = Array.from({ length: count }, (_, index) => index)
  yield [...order]
  for (;;) {
    let last = count - 2
    while (last >= 0 && at(order, last) > at(order, last + 1)) last--
    if (last < 0) return
    let next = count - 1
    while (at(order, next) < at(order, last)) next--
    swap(order, last, next)
    for (let low = last + 1, high = count - 1; low < high; low++, high--) swap(order, low, high)
    yield [...order]
  }
}

/** A random order of the numbers below `count`. */
export function shuffled(count: number, random: Random): number[] {
  const order = Array.from({ length: count }, (_, index) => index)
  for (let index = count - 1; index > 0; index--) {
    swap(order, index, Math.floor(random() * (index + 1)))
  }
  return order
}

/** How far an order is from the natural one: the number of pairs that stand the other way round. */
export function inversions(order: readonly number[]): number {
  let count = 0
  for (let i = 0; i < order.length; i++) {
    for (let j = i + 1; j < order.length; j++) if (at(order, i) > at(order, j)) count++
  }
  return count
}

/**
 * The orders to try: every one of `count` things up to `exhaustive`, else the natural one and
 * `samples` random ones.
 */
export function* orderings(
  count: number,
  options: { readonly exhaustive: number; readonly samples: number; readonly random: Random },
): Generator<readonly number[]> {
  if (count <= options.exhaustive) return yield* permutations(count)
  yield Array.from({ length: count }, (_, index) => index)
  for (let sample = 0; sample < options.samples; sample++) yield shuffled(count, options.random)
}

function at(order: readonly number[], index: number): number {
  return order[index] ?? -1
}

function swap(order: number[], a: number, b: number): void {
  const kept = at(order, a)
  order[a] = at(order, b)
  order[b] = kept
}
