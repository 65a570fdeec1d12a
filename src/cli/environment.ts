/**
 * The only reader of environment variables. An empty variable counts as unset; a bad value is one
 * line that names the variable, and shows it only where it cannot be a secret. Values are checked
 * when they are asked for: a command is not stopped by what it does not use.
 */
import { resolve } from 'node:path'
import { HookledgerError } from '../core/errors.ts'
import { schemaPrefix } from '../postgres/schema-name.ts'
import { logLevels, type LogLevel } from '../observe/log.ts'

/** The environment, as far as Hookledger reads it. */
export class Environment {
  readonly #variables: Readonly<Record<string, string | undefined>>
  readonly #cwd: string

  constructor(
    variables: Readonly<Record<string, string | undefined>> = process.env,
    cwd: string = process.cwd(),
  ) {
    this.#variables = variables
    this.#cwd = cwd
  }

  /** `DATABASE_URL`: a URL of PostgreSQL. Never shown: it holds a password. */
  get databaseUrl(): string | undefined {
    const value = this.#get('DATABASE_URL')
    if (value === undefined || /^postgres(?:ql)?:\/\/\S+$/.test(value)) return value
    throw invalid('DATABASE_URL must be a URL such as postgres://user:password@host:5432/database')
  }

  /** `PORT`: 0 lets the system choose. */
  get port(): number | undefined {
    const value = this.#get('PORT')
    if (value === undefined) return undefined
    if (/^\d{1,5}$/.test(value) && Number(value) <= 65_535) return Number(value)
    throw invalid(`PORT must be a whole number from 0 to 65535, not ${shown(value)}`)
  }

  /** `HOST`: the address to listen on. */
  get host(): string | undefined {
    const value = this.#get('HOST')
    if (value === undefined || /^[A-Za-z0-9.:_%-]{1,255}$/.test(value)) return value
    throw invalid(`HOST must be an address or a host name to listen on, not ${shown(value)}`)
  }

  /** `LOG_LEVEL`. */
  get logLevel(): LogLevel | undefined {
    const value = this.#get('LOG_LEVEL')?.toLowerCase()
    const level = logLevels.find((each) => each === value)
    if (value === undefined || level !== undefined) return level
    throw invalid(`LOG_LEVEL must be one of ${logLevels.join(', ')}, not ${shown(value)}`)
  }

  /** `HOOKLEDGER_SCHEMA`. */
  get schema(): string | undefined {
    const value = this.#get('HOOKLEDGER_SCHEMA')
    if (value === undefined) return undefined
    try {
      schemaPrefix(value)
      return value
    } catch (error) {
      throw invalid(
        `HOOKLEDGER_SCHEMA must be a lower-case identifier of at most 63 letters, digits and underscores, not ${shown(value)}`,
        error,
      )
    }
  }

  /** `HOOKLEDGER_DATA_DIR`, absolute; `.hookledger` in the working directory without it. */
  get dataDir(): string {
    return resolve(this.#cwd, this.#get('HOOKLEDGER_DATA_DIR') ?? '.hookledger')
  }

  /** `NO_COLOR`: set to anything means without colors. */
  get noColor(): boolean {
    return this.#get('NO_COLOR') !== undefined || this.#get('TERM') === 'dumb'
  }

  /** Who runs this, for the record of acts. */
  get user(): string | undefined {
    return this.#get('SUDO_USER') ?? this.#get('USER') ?? this.#get('LOGNAME')
  }

  /** The variable as it is, for what the simulated services and the configuration share. */
  value(name: 'STRIPE_WEBHOOK_SECRET' | 'SHOP_EMAIL_URL'): string | undefined {
    return this.#get(name)
  }

  /** Checks everything at once: a server says what is wrong before it starts, not when it is needed. */
  checkAll(): void {
    void [this.databaseUrl, this.port, this.host, this.logLevel, this.schema, this.dataDir]
  }

  /**
   * Gives a variable to what is loaded from now on (the configuration, its pool, a child process),
   * where it is not set: how a running or embedded database reaches the configuration.
   */
  provide(
    name: 'DATABASE_URL' | 'STRIPE_API_BASE' | 'STRIPE_WEBHOOK_SECRET' | 'SHOP_EMAIL_URL',
    value: string,
  ): void {
    if (this.#get(name) !== undefined) return
    process.env[name] = value
  }

  /** The variables of a child process, with some of them replaced. */
  forChild(replaced: Readonly<Record<string, string>>): Record<string, string | undefined> {
    return { ...this.#variables, ...replaced }
  }

  #get(name: string): string | undefined {
    const value = this.#variables[name]
    return value === undefined || value === '' ? undefined : value
  }
}

/** At most a few characters of a value, on one line. */
function shown(value: string): string {
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
}

function invalid(message: string, cause?: unknown): HookledgerError {
  return new HookledgerError('HKL_CONFIG_INVALID', message, { cause })
}
