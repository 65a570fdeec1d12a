/**
 * Pictures of the console for the docs: starts the demo, waits until it has something to show, and takes each page
 * that is named below. `npm run screenshots -- FOLDER [--url http://…]`; with an address, that console is taken.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import chromium from '@sparticuz/chromium'
import { chromium as playwright, type Browser } from 'playwright-core'

interface Picture {
  readonly name: string
  readonly theme: 'light' | 'dark'
  readonly width: number
  /** Below `/console`; what stands in braces is asked of the API. */
  readonly path: string
}

const pictures: readonly Picture[] = [
  { name: 'overview', theme: 'light', width: 1280, path: '/' },
  { name: 'overview-dark', theme: 'dark', width: 1280, path: '/' },
  { name: 'order', theme: 'light', width: 1280, path: '/orders/{order}' },
  { name: 'order-narrow', theme: 'dark', width: 390, path: '/orders/{order}' },
  { name: 'subject', theme: 'light', width: 1280, path: '/subjects/{subject}' },
  { name: 'finding', theme: 'light', width: 1280, path: '/findings/{finding}' },
  { name: 'inbox', theme: 'light', width: 1280, path: '/inbox' },
  { name: 'outbox', theme: 'dark', width: 1280, path: '/outbox' },
]

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { url: { type: 'string' } },
})
const [folder] = positionals
if (folder === undefined) {
  console.error('say where to: npm run screenshots -- FOLDER')
  process.exit(2)
}
mkdirSync(folder, { recursive: true })

const demo = values.url === undefined ? await startDemo() : null
const browser = await playwright.launch({
  executablePath: await chromium.executablePath(),
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
})
try {
  const url = values.url ?? demo?.url ?? ''
  const found = await whatToShow(url)
  for (const picture of pictures) await take(browser, url, picture, found)
} finally {
  await browser.close()
  await demo?.stop()
}

/** The demo, once its simulation has ended, with its reconciliation and all that was tampered with. */
async function startDemo(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const data = mkdtempSync(join(tmpdir(), 'hookledger-screenshots-'))
  const child = spawn(process.execPath, ['scripts/start.mjs', '--orders', '60'], {
    env: { ...process.env, HOOKLEDGER_DATA_DIR: data, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let told = ''
  child.stdout.on('data', (chunk) => (told += String(chunk)))
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  while (!told.includes('simulation finished') && child.exitCode === null) await sleep(500)
  const file = join(data, 'dev.json')
  if (!existsSync(file)) throw new Error(`the demo did not start:\n${told}`)
  const { url, pid } = JSON.parse(readFileSync(file, 'utf8')) as { url: string; pid: number }
  return {
    url,
    async stop() {
      process.kill(pid, 'SIGTERM')
      await ended
      rmSync(data, { recursive: true, force: true })
    },
  }
}

/** An order with a story, its subject, and a finding about something. */
async function whatToShow(url: string): Promise<Readonly<Record<string, string>>> {
  const list = async (path: string): Promise<readonly Record<string, string>[]> => {
    const response = await fetch(`${url}/api${path}`)
    if (!response.ok) throw new Error(`${path} was answered ${response.status}`)
    return ((await response.json()) as { items: Record<string, string>[] }).items
  }
  const [finding] = await list('/findings?state=unfinished&kind=tampered')
  const [refunded] = await list('/orders?workflow=license&state=refunded')
  const order = refunded?.['order_id'] ?? finding?.['order_id'] ?? ''
  const [entitled] = await list('/entitlements?in_force=true')
  return {
    order,
    subject: entitled?.['subject'] ?? '',
    finding: finding?.['finding_id'] ?? '',
  }
}

async function take(
  over: Browser,
  url: string,
  { name, theme, width, path }: Picture,
  found: Readonly<Record<string, string>>,
): Promise<void> {
  const page = await over.newPage({
    colorScheme: theme,
    viewport: { width, height: 900 },
    deviceScaleFactor: 1,
    timezoneId: 'UTC',
    locale: 'en-GB',
  })
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, key: string) =>
    encodeURIComponent(found[key] ?? ''),
  )
  await page.goto(`${url}/console${filled}`)
  await page.waitForLoadState('networkidle')
  await page.screenshot({ path: join(folder ?? '.', `${name}.png`) })
  await page.close()
  console.log(`${name}.png`)
}
