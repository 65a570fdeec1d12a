/**
 * Reads one parameter each as what the endpoint takes it for, and refuses what it does not understand
 * in Stripe's words: a test must not pass because a typo was ignored.
 */
import { invalidRequest } from './api-error.ts'
import type { Parameter, Parameters } from './form-parameters.ts'
import type { Metadata } from './object-kinds.ts'

/** Refuses parameters that the endpoint does not know; `expand` is always known. */
export function allowOnly(parameters: Parameters, names: readonly string[]): void {
  for (const name of Object.keys(parameters)) {
    if (name === 'expand' || names.includes(name)) continue
    throw invalidRequest(`Received unknown parameter: ${name}`, {
      code: 'parameter_unknown',
      param: name,
    })
  }
}

/** A text, or undefined when it is not given. */
export function text(parameters: Parameters, name: string): string | undefined {
  const value = parameters[name]
  if (value === undefined || typeof value === 'string') return value
  throw invalidRequest(`Invalid string: ${name}`, { param: name })
}

/** A text that must be there and not be empty. */
export function requiredText(parameters: Parameters, name: string): string {
  const value = text(parameters, name)
  if (value === undefined || value === '') {
    throw invalidRequest(`Missing required param: ${name}.`, {
      code: 'parameter_missing',
      param: name,
    })
  }
  return value
}

/** A non-negative integer, or undefined when it is not given. */
export function integer(parameters: Parameters, name: string): number | undefined {
  const value = text(parameters, name)
  if (value === undefined) return undefined
  if (!/^\d{1,15}$/.test(value)) {
    throw invalidRequest(`Invalid integer: ${value.slice(0, 40)}`, {
      code: 'parameter_invalid_integer',
      param: name,
    })
  }
  return Number(value)
}

/** A positive integer that must be there. */
export function requiredAmount(parameters: Parameters, name: string): number {
  requiredText(parameters, name)
  const value = integer(parameters, name)!
  if (value < 1) {
    throw invalidRequest('This value must be greater than or equal to 1.', {
      code: 'parameter_invalid_integer',
      param: name,
    })
  }
  return value
}

/** A hash of texts; an empty string in its place means "remove all". */
export function metadata(parameters: Parameters, name = 'metadata'): Metadata | '' | undefined {
  const value = parameters[name]
  if (value === undefined || value === '') return value
  const entries = Object.entries(hash(value, name))
  for (const [key, entry] of entries) {
    if (typeof entry !== 'string')
      throw invalidRequest(`Metadata values must be strings, but ${name}[${key}] is not.`, {
        param: name,
      })
  }
  return Object.fromEntries(entries) as Metadata
}

/** Metadata of something new, where "remove all" leaves nothing. */
export function newMetadata(parameters: Parameters, name = 'metadata'): Metadata {
  return metadata(parameters, name) || {}
}

/** A nested hash, empty when it is not given. */
export function nested(parameters: Parameters, name: string): Parameters {
  const value = parameters[name]
  return value === undefined ? {} : hash(value, name)
}

/** A list of hashes, empty when it is not given. */
export function nestedList(parameters: Parameters, name: string): Parameters[] {
  const value = parameters[name]
  if (value === undefined) return []
  if (!Array.isArray(value)) throw invalidRequest(`Invalid array: ${name}`, { param: name })
  return value.map((entry) => hash(entry, name))
}

/** A list of texts, or undefined when it is not given. */
export function textList(parameters: Parameters, name: string): string[] | undefined {
  const value = parameters[name]
  if (value === undefined) return undefined
  if (!Array.isArray(value) || value.some((entry) => typeof entry !== 'string')) {
    throw invalidRequest(`Invalid array: ${name}`, { param: name })
  }
  return value as string[]
}

/** One of the given texts, or undefined when it is not given. */
export function oneOf<T extends string>(
  parameters: Parameters,
  name: string,
  choices: readonly T[],
): T | undefined {
  const value = text(parameters, name)
  if (value === undefined || (choices as readonly string[]).includes(value))
    return value as T | undefined
  throw invalidRequest(`Invalid ${name}: must be one of ${choices.join(', ')}`, { param: name })
}

/** `true` or `false`, or undefined when it is not given. */
export function flag(parameters: Parameters, name: string): boolean | undefined {
  const value = oneOf(parameters, name, ['true', 'false'])
  return value === undefined ? undefined : value === 'true'
}

/** The fields that have a value: an optional parameter that is absent stays absent. */
export function defined<T extends object>(
  fields: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}

function hash(value: Parameter, name: string): Parameters {
  if (typeof value === 'string' || Array.isArray(value))
    throw invalidRequest(`Invalid object: ${name}`, { param: name })
  return value
}
