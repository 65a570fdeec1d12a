/** A list in parts of at most so many. */
export function* inSlices<T>(list: readonly T[], most: number): Generator<readonly T[]> {
  for (let at = 0; at < list.length; at += most) yield list.slice(at, at + most)
}
