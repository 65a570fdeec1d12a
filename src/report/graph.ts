/** A workflow as a Mermaid state diagram: what may follow what, and which states entitle. */
import type { Workflow } from '../workflow/workflow.ts'

/** The Mermaid text of one workflow. States without a way out end. */
export function graph(workflow: Workflow): string {
  const states = [...workflow.states]
  const ids = new Map(
    states.map(([state], index) => [
      state,
      isPlain(state) ? state : `s${index}__${state.replaceAll('-', '_')}`,
    ]),
  )
  const label = (state: string): string => ids.get(state) ?? state
  const entitling = states
    .filter(([, options]) => options.entitles === true)
    .map(([state]) => label(state))
  const lines = [
    '---',
    `title: ${workflow.name}`,
    '---',
    'stateDiagram-v2',
    ...states
      .filter(([state]) => label(state) !== state)
      .map(([state]) => `  state "${state}" as ${label(state)}`),
    `  [*] --> ${label(workflow.initial)}`,
    ...[...workflow.transitions].flatMap(([from, targets]) =>
      targets.map((to) => `  ${label(from)} --> ${label(to)}`),
    ),
    ...states
      .filter(([state]) => (workflow.transitions.get(state) ?? []).length === 0)
      .map(([state]) => `  ${label(state)} --> [*]`),
    ...(entitling.length === 0
      ? []
      : ['  classDef entitles stroke-width:3px', `  class ${entitling.join(',')} entitles`]),
  ]
  return lines.join('\n')
}

/** Whether Mermaid takes a name as it is: hyphens and its own words need an alias. */
function isPlain(state: string): boolean {
  return (
    !state.includes('-') &&
    !/^(?:end|state|note|class|classDef|direction|default|as|style)$/i.test(state)
  )
}
