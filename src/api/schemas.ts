/**
 * What the shapes of several routes share: ids, moments, exact numbers, pages. Keys are snake_case; moments are
 * ISO texts; numbers that may pass 2^53 (amounts, keys, counts of the ledger) are texts of digits.
 */
import { z } from 'zod'

/** A moment, as ISO text in UTC. */
export const moment: z.ZodString = z.string().meta({ format: 'date-time' })

/** A whole number of any size, as text. */
export const exactNumber: z.ZodString = z.string().regex(/^-?\d{1,40}$/)

/** A name or an id as somebody may type it: never empty, never long enough to harm. */
export const idText: z.ZodString = z.string().min(1).max(512)

/** Why: recorded with the act. */
export const reasonText: z.ZodString = z.string().trim().min(3).max(2000)

/** What a page of a list is asked with: `cursor` is the `next` of the page before. */
export const pageQuery: z.ZodObject<{
  cursor: z.ZodOptional<z.ZodString>
  limit: z.ZodDefault<z.ZodCoercedNumber>
}> = z.strictObject({
  cursor: z.string().max(1024).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
})

/** A page of a list. */
export function pageOf<Item extends z.ZodType>(
  item: Item,
): z.ZodObject<{ items: z.ZodArray<Item>; next: z.ZodNullable<z.ZodString> }, z.core.$strict> {
  return z.strictObject({
    items: z.array(item),
    /** Null at the end. */
    next: z.string().nullable(),
  })
}
