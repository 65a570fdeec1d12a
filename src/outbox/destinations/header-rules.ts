/**
 * Which headers a person may add: none that frame the request or belong to the dispatcher, and no secret
 * among those that are stored.
 */
import { HookledgerError } from '../../core/errors.ts'
import { isHeaderName, isHeaderValue } from './http-request.ts'

const ours: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'webhook-id',
  'webhook-signature',
  'webhook-timestamp',
])

/** Whether a header is set by Hookledger, so that nothing else can stand in it. */
export function isOwnHeader(name: string): boolean {
  return ours.has(name.toLowerCase())
}

const secret = /^(?:authorization|cookie|proxy-.*|.*(?:api-?key|secret|token|password).*)$/

/**
 * Headers by name in lower case.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID (HKL_CONFIG_SECRET for an unset secret) naming the header
 */
export function checkHeaders(
  maker: string,
  option: 'headers' | 'secretHeaders',
  headers: unknown,
  keyHeader: string | null,
): Readonly<Record<string, string>> {
  if (headers === undefined) return {}
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    throw wrong(maker, option, 'must be an object of header names and values')
  }
  const checked = new Map<string, string>()
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase()
    const at = `${option}['${name}']`
    if (!isHeaderName(name)) throw wrong(maker, option, 'has a name that no header can have')
    if (ours.has(lower) || lower === keyHeader || checked.has(lower)) {
      throw wrong(maker, at, 'is set by Hookledger, or twice')
    }
    if (option === 'headers' && secret.test(lower)) {
      throw wrong(maker, at, 'would be stored with every request; give it in secretHeaders')
    }
    checked.set(lower, headerValue(maker, option, at, value))
  }
  return Object.freeze(Object.fromEntries(checked))
}

function headerValue(maker: string, option: string, at: string, value: unknown): string {
  if (option === 'secretHeaders' && (value === undefined || value === null || value === '')) {
    throw new HookledgerError(
      'HKL_CONFIG_SECRET',
      `${maker}: ${at} is not set; is the environment variable that it is read from?`,
    )
  }
  if (typeof value === 'string' && isHeaderValue(value)) return value
  throw wrong(maker, at, 'must be printable text without line ends')
}

function wrong(maker: string, option: string, problem: string): HookledgerError {
  return new HookledgerError('HKL_CONFIG_INVALID', `${maker}: ${option} ${problem}`)
}
