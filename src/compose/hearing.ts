/** A role of this process that hears what wakes it, until it is stopped. */

/** The role, made to hear nothing any more once it is told to stop. */
export function hearingUntilStopped<
  Role extends { readonly stop: (timeoutMs: number) => Promise<unknown> },
>(role: Role, ...unhear: readonly (() => void)[]): Role {
  return {
    ...role,
    stop: (timeoutMs: number) => {
      for (const each of unhear) each()
      return role.stop(timeoutMs)
    },
  }
}
