/** What a deferred event waits for, in words. */
import type { Missing } from './decision.ts'

/** `payment_intent pi_1`, `effect license`, `operation receipt of license to be sent to email`. */
export function describeMissing(missing: Missing): string {
  switch (missing.kind) {
    case 'name':
      return `${missing.name.kind} ${missing.name.value}`
    case 'effect':
      return `effect ${missing.type}${missing.reference === '' ? '' : ` ${missing.reference}`}`
    case 'payment':
      return `payment ${missing.id}`
    case 'customer':
      return `customer ${missing.id} to be linked with a subject`
    case 'state':
      return `state ${missing.states.join(' or ')}`
    case 'operation':
      return describeOperation(missing)
  }
}

function describeOperation(missing: Extract<Missing, { kind: 'operation' }>): string {
  const { type, reference = '', name = type, to } = missing
  const effect = reference === '' ? type : `${type} ${reference}`
  const what = name === type ? `operation of effect ${effect}` : `operation ${name} of ${effect}`
  return to === undefined ? `${what} to be sent` : `${what} to be sent to ${to}`
}
