/**
 * The console's own files, read once and served from memory: a name that is not among them does not exist. The
 * page may load nothing but these, and talk to nobody but its own host.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Serves the page and its files. */
export interface ConsolePage {
  /** `name` is the path below `/console/`; anything that is no file of it is the page. */
  answer(name: string): Response
}

const token = '/__hookledger_prefix__'

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const always: Readonly<Record<string, string>> = {
  'content-security-policy': policy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** The page, mounted below a prefix. */
export function consolePage(prefix: string): ConsolePage {
  const folder = findFolder()
  const files = new Map<string, Uint8Array>()
  let page: string | null = null
  if (folder !== null) {
    page = readFileSync(join(folder, 'index.html'), 'utf8').replaceAll(token, prefix)
    for (const name of readdirSync(join(folder, 'assets')))
      files.set(`assets/${name}`, readFileSync(join(folder, 'assets', name)))
  }
  return {
    answer(name) {
      const file = files.get(name)
      if (file !== undefined) {
        const type = types[extname(name)] ?? 'application/octet-stream'
        // their names change with what is in them
        return answered(Buffer.from(file), type, 'public, max-age=31536000, immutable')
      }
      if (name.startsWith('assets/')) return answered('not found', 'text/plain', 'no-store', 404)
      if (page === null) {
        const text = 'The console is not built: npm run console'
        return answered(text, 'text/plain; charset=utf-8', 'no-store', 503)
      }
      return answered(page, 'text/html; charset=utf-8', 'no-store')
    },
  }
}

function answered(
  body: string | Buffer,
  type: string,
  cacheControl: string,
  status = 200,
): Response {
  const headers = { ...always, 'content-type': type, 'cache-control': cacheControl }
  return new Response(typeof body === 'string' ? body : new Uint8Array(body), { status, headers })
}

/** Beside the package's own files, or where it is built from source. */
function findFolder(): string | null {
  for (const path of ['../../console/', '../../../console/dist/']) {
    const folder = fileURLToPath(new URL(path, import.meta.url))
    try {
      readFileSync(join(folder, 'index.html'))
      return folder
    } catch {
      continue
    }
  }
  return null
}
