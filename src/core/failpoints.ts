/**
 * Named steps at which a test can make a process die, stop, throw or lose its connection. They are
 * compiled into the product so that what is tested is what runs; without a plan a step is one
 * comparison with null.
 */

/** Every step: receiver R0–R10, worker W0–W7, dispatcher D0–D6, reconciler C0–C7, repair P0–P6, gatherer G0–G7, bulk acts B0–B3. */
export type Step =
  | `R${0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10}`
  | `W${0 | 1 | 2 | 3 | 4 | 5 | 6 | 7}`
  | `D${0 | 1 | 2 | 3 | 4 | 5 | 6}`
  | `C${0 | 1 | 2 | 3 | 4 | 5 | 6 | 7}`
  | `P${0 | 1 | 2 | 3 | 4 | 5 | 6}`
  | `G${0 | 1 | 2 | 3 | 4 | 5 | 6 | 7}`
  | `B${0 | 1 | 2 | 3}`

/** Called at a step that the plan names; may never return (kill), throw or wait. */
export type FailpointAction = (step: Step) => void | Promise<void>

let plan: FailpointAction | null = null

/** Installs what happens at steps; null (the default) makes every step a no-op. */
export function installFailpoints(action: FailpointAction | null): void {
  plan = action
}

/** Whether any step does anything: what only serves steps need not be set up otherwise. */
export function areStepsPlanned(): boolean {
  return plan !== null
}

/** Marks a step. Awaits only when a plan is installed. */
export function reach(step: Step): void | Promise<void> {
  return plan === null ? undefined : plan(step)
}
