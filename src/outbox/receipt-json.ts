/** Receipts as the database keeps them. */
import { toJson } from '../core/json.ts'
import { storable } from '../postgres/storable-text.ts'
import type { Receipt } from './destination.ts'

/** A receipt as it is stored. */
export function receiptJson(receipt: Receipt): string {
  return storable(toJson(receipt))
}
