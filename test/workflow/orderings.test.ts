import { describe, expect, test } from 'vitest'
import {
  inversions,
  orderings,
  permutations,
  seededRandom,
  shuffled,
} from '../../src/workflow/orderings.ts'

describe('permutations', () => {
  test.each([
    [0, 1],
    [1, 1],
    [3, 6],
    [5, 120],
  ])('of %i things are %i, all different', (count, expected) => {
    const all = [...permutations(count)].map((order) => order.join())
    expect(all).toHaveLength(expected)
    expect(new Set(all).size).toBe(expected)
  })

  test('begin with the natural order', () => {
    expect([...permutations(3)]).toEqual([
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ])
  })
})

describe('orderings', () => {
  const options = (seed: number) => ({ exhaustive: 3, samples: 10, random: seededRandom(seed) })

  test('are all of few things, and a sample that begins with the natural order of many', () => {
    expect([...orderings(3, options(1))]).toHaveLength(6)
    const sample = [...orderings(8, options(1))]
    expect(sample).toHaveLength(11)
    expect(sample[0]).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    for (const order of sample) expect([...order].sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  })

  test('are the same for the same seed, and others for another', () => {
    expect([...orderings(8, options(1))]).toEqual([...orderings(8, options(1))])
    expect([...orderings(8, options(1))]).not.toEqual([...orderings(8, options(2))])
  })
})

describe('shuffled', () => {
  test('brings every thing to every place', () => {
    const random = seededRandom(3)
    const places = new Set<string>()
    for (let round = 0; round < 200; round++) {
      shuffled(4, random).forEach((thing, place) => places.add(`${thing}@${place}`))
    }
    expect(places.size).toBe(16)
  })
})

describe('inversions', () => {
  test('counts the pairs that stand the other way round', () => {
    expect(
      [
        [0, 1, 2],
        [1, 0, 2],
        [2, 1, 0],
      ].map(inversions),
    ).toEqual([0, 1, 3])
  })
})
