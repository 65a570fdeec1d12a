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

/** The id of an operation that the app asks for itself. */
export function appOperationId(installationId: string, destination: string, key: string): string {
  return permanentId(installationId, ['app', destination, key])
}

/** What the destination is to recognize the operation by. */
export function sentKey(operationId: string, generation: number): string {
  return generation === 1 ? operationId : `${operationId}:${generation}`
}

/** The other way round: the operation and generation of a key that came back; null where it is none of ours. */
export function readSentKey(key: string): { operationId: string; generation: number } | null {
  const match = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?::([1-9]\d{0,8}))?$/.exec(key)
  if (match?.[1] === undefined) return null
  return { operationId: match[1], generation: match[2] === undefined ? 1 : Number(match[2]) }
}
