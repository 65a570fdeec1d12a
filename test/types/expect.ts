/** Two types are the same: neither wider nor narrower, and `any` is only `any`. */
export type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** Compiles only for `true`; does nothing when it runs. */
export function check<T extends true>(_?: T): void {}
