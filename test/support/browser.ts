/**
 * The console in a real browser: Chromium from npm, the built page, a server of its own on this machine. Whoever
 * looks is said by a cookie, which only this harness gives a meaning to, so that another page of the same host is
 * as tempted to misuse it as it would be by a session's.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import chromium from '@sparticuz/chromium'
import type { Hookledger } from 'hookledger'
import {
  chromium as playwright,
  type Browser,
  type BrowserContext,
  type Page,
} from 'playwright-core'
import type { Identity, Role } from '../../src/compose/console-options.ts'
import { createConsole } from '../../src/server/console/console.ts'
import { builtConsole } from './built-console.ts'
import { identityOf } from './console-api.ts'

/** How somebody looks at it. */
export interface Look {
  /** Null: nobody is signed in. Default: an admin. */
  readonly as?: Identity | Role | null
  readonly theme?: 'light' | 'dark'
  /** Pixels. */
  readonly width?: number
  readonly height?: number
}

/** One person's window, and all that went wrong in it. */
export interface Seen {
  readonly page: Page
  readonly context: BrowserContext
  /** Messages of the browser's console that are errors or warnings, and what the page threw. */
  readonly faults: string[]
  /** Requests to anything but the console. */
  readonly strangers: string[]
  /** Opens a path below `/console` and waits until nothing is loading any more. */
  go(path: string): Promise<void>
  /** Waits until nothing is loading any more. */
  settled(): Promise<void>
  /** From the next request on it is by somebody else, or nobody; the page is not told. */
  become(as: Identity | Role | null): Promise<void>
  close(): Promise<void>
}

/** A served console with a browser. */
export interface ConsoleBrowser {
  /** `http://127.0.0.1:PORT`, with the prefix. */
  readonly address: string
  readonly browser: Browser
  look(look?: Look): Promise<Seen>
  close(): Promise<void>
}

/** The cookie that says who looks. */
const cookie = 'test_looks'

/**
 * Serves a console and starts a browser. Close it. Where the Hookledger is made for the address, its own
 * configuration says who may come in, and a `look` is by nobody yet.
 */
export async function openBrowser(
  given: Hookledger | ((origin: string) => Promise<Hookledger>),
  { prefix = '' }: { prefix?: string } = {},
): Promise<ConsoleBrowser> {
  await builtConsole()
  const server = createServer((request, response) => mounted.node(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // by another name than what people sign in at: for a browser that is another site
  const host = typeof given === 'function' ? 'localhost' : '127.0.0.1'
  const origin = `http://${host}:${(server.address() as AddressInfo).port}`
  const mounted =
    typeof given === 'function'
      ? createConsole(await given(origin), { prefix })
      : createConsole(given, {
          prefix,
          authorize: ({ headers }) => whoLooks(headers.get('cookie')),
        })
  const browser = await launchBrowser()
  return {
    address: origin + prefix,
    browser,
    look: (look = {}) => openWindow({ browser, origin, prefix, look }),
    close: async () => {
      await browser.close()
      await stop(server)
    },
  }
}

/**
 * Chromium with its own rules: those that the package suggests turn off what keeps sites apart, which is what is
 * tested here. Without a sandbox: containers and root may not have one.
 */
export async function launchBrowser(): Promise<Browser> {
  return playwright.launch({
    executablePath: await chromium.executablePath(),
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    headless: true,
  })
}

function whoLooks(cookies: string | null): Identity | null {
  const given = cookies?.split('; ').find((each) => each.startsWith(`${cookie}=`))
  if (given === undefined) return null
  return JSON.parse(decodeURIComponent(given.slice(cookie.length + 1))) as Identity
}

async function openWindow(of: {
  readonly browser: Browser
  readonly origin: string
  readonly prefix: string
  readonly look: Look
}): Promise<Seen> {
  const { browser, origin, prefix, look } = of
  const { as = 'admin', theme = 'light', width = 1280, height = 900 } = look
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    locale: 'en-GB',
    timezoneId: 'UTC',
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  const become: Seen['become'] = async (who) => {
    const identity = identityOf(who)
    if (identity === null) return context.clearCookies({ name: cookie })
    const value = encodeURIComponent(JSON.stringify(identity))
    await context.addCookies([{ name: cookie, value, url: origin, sameSite: 'Lax' }])
  }
  await become(as)
  const page = await context.newPage()
  page.setDefaultTimeout(10_000)
  const faults: string[] = []
  const strangers: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(message.text())
  })
  page.on('pageerror', (error) => faults.push(String(error)))
  page.on('request', (request) => {
    const { origin: asked, protocol } = new URL(request.url())
    if (asked !== origin && protocol !== 'blob:') strangers.push(request.url())
  })
  const settled = watchRequests(page)
  return {
    page,
    context,
    faults,
    strangers,
    settled,
    become,
    go: async (path) => {
      await page.goto(`${origin}${prefix}/console${path}`)
      await settled()
    },
    close: () => context.close(),
  }
}

/** Waits until nothing has been asked for a moment (what an answer leads to has begun by then), and all is shown. */
function watchRequests(page: Page): () => Promise<void> {
  let open = 0
  let since = performance.now()
  const change = (by: number) => () => {
    open += by
    since = performance.now()
  }
  page.on('request', change(1))
  page.on('requestfinished', change(-1))
  page.on('requestfailed', change(-1))
  return async () => {
    const asked = performance.now()
    while (performance.now() - asked < 15_000) {
      const isQuiet = open <= 0 && performance.now() - since > 80
      if (isQuiet && (await page.locator('.loading').count()) === 0) return
      await sleep(15)
    }
    throw new Error(`${page.url()} is still loading after 15 s`)
  }
}

async function stop(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}
