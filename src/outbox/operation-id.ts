/**
 * The permanent id of an operation: the same facts give the same id for ever, in every process, so that
 * recording an operation twice is recording it once.
 */
import { permanentId } from '../postgres/permanent-id.ts'

/** The facts that make the id of an effect's operation. */
export interface EffectOperation {
  readonly orderId: string
  readonly effectType: string
  readonly effectReference: string
  readonly destination: string
  readonly name: string
}

/** The id of an operation that an effect asks for. */
export function effectOperationId(installationId: string, of: EffectOperation): string {
  return permanentId(installationId, [
    'operation',
    of.orderId,
    of.effectType,
    of.effectReference,
    of.destination,
    of.name,
  ])
}

/** What the destination is to recognize the operation by. */
export function sentKey(operationId: string, generation: number): string {
  return generation === 1 ? operationId : `${operationId}:${generation}`
}
