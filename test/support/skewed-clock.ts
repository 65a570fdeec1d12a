/**
 * Moves this process's own clock by `skewMs` of the settings that it was started with: imported before
 * anything else, so that nobody has read the time. Timers and `performance` are monotonic and stay.
 */
const { skewMs = 0 } = JSON.parse(process.argv[2] ?? '{}') as { readonly skewMs?: number }

if (skewMs !== 0) {
  const Real = Date
  const now = (): number => Real.now() + skewMs
  globalThis.Date = new Proxy(Real, {
    construct: (target, given: [], newTarget) =>
      Reflect.construct(target, given.length === 0 ? [now()] : given, newTarget) as object,
    apply: () => new Real(now()).toString(),
    get: (target, name, receiver) =>
      name === 'now' ? now : (Reflect.get(target, name, receiver) as unknown),
  })
}
