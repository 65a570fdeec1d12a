/** What a check of the server or the schema has to say. */
import type { ErrorCode } from '../core/errors.ts'

/** One thing found. `breaks` names the promise that does not hold; absent where it is only advice. */
export interface Diagnosis {
  readonly code:
    | Extract<
        ErrorCode,
        `HKL_DATABASE_${string}` | `HKL_SCHEMA_${string}` | 'HKL_CONFIG_ENVIRONMENT'
      >
    | 'advice'
  readonly message: string
  readonly breaks?: string
  /** True where `acceptDurability` may say that it is safe here. */
  readonly acceptable?: boolean
}
