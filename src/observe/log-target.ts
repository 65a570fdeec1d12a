/** Where lines of the log go: a pino logger, or anything with its methods. Fields come first, as in pino. */
export interface LogTarget {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}
