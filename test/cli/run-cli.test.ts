import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { commands } from '../../src/cli/commands.ts'
import { run } from './memory-world.ts'

const shop = join(import.meta.dirname, '../../examples/shop/hookledger.config.ts')
const { version } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'),
) as { version: string }

describe('hookledger', () => {
  it('prints its version and its help on stdout', async () => {
    expect(await run(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
    const help = await run(['--help'])
    expect(help.code).toBe(0)
    for (const name of Object.keys(commands))
      expect(help.stdout.includes(name)).toBe(!name.startsWith('internal-'))
    expect(help.stdout).not.toContain('\u001b')
  })

  it('prints its help on stderr and fails when nothing is asked', async () => {
    const { code, stdout, stderr } = await run([])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain('COMMANDS')
  })

  it.each([
    [['status', '--help'], 'hookledger status'],
    [['help', 'status'], 'hookledger status'],
    [['dead', '--help'], 'list|show|replay'],
    [['dead', 'replay', '-h'], '--reason'],
  ])('explains %j', async (line, text) => {
    const { code, stdout } = await run(line)
    expect(code).toBe(0)
    expect(stdout).toContain(text)
  })

  it.each([
    [['statu'], 'unknown command "statu", did you mean "status"?'],
    [['dead', 'lst'], 'unknown command "lst", did you mean "list"?'],
    [['frobnicate'], 'unknown command "frobnicate"; it knows dev, start, init'],
    [['status', '--jsn'], 'unknown option --jsn, did you mean --json?'],
    [['status', 'now'], '"now" is one argument too many'],
    [['explain'], 'ID is missing'],
    [['findings', 'show', '3c58', '--config', shop], 'at least its first six characters'],
    [
      ['start', '--roles', 'receiv'],
      'unknown role "receiv", did you mean receive?; known are receive, work',
    ],
    [['start', '--roles', 'gathr'], 'unknown role "gathr", did you mean gather?'],
    [['start', '--port', '70000'], '--port must be'],
    [['dev', '--orders', 'many', '--simulate', '--config', shop], '--orders must be'],
    [['replay', '--config', shop], 'say what to replay'],
    [['replay', 'evt_1', '--all-dead', '--config', shop], 'give one event'],
    [['replay', '--type', 'a', '--since', 'noon', '--config', shop], '--since must be a time'],
    [['replay', '--state', 'processed', '--config', shop], '--state must be of'],
    [['send', 'paypal', 'x'], 'send knows the provider stripe'],
    [['send', 'stripe', 'checkout.session.complete'], 'did you mean checkout.session.completed?'],
    [['send', 'stripe', 'refund.created', '--times', '0'], '--times must be'],
    [['send', 'stripe', 'refund.created', '--url', 'ftp://x'], '--url must be'],
    [['migrate', '--print', '--dry-run', '--config', shop], 'give one of'],
  ])('calls %j wrong use, in one line', async (line, message) => {
    const { code, stdout, stderr } = await run(line)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(message)
    expect(stderr.trimEnd()).not.toContain('\n')
  })

  it('takes the shared options before and after the command', async () => {
    const after = await run(['graph', 'license', '--config', shop])
    const before = await run(['--config', shop, 'graph', 'license'])
    expect(after.code).toBe(0)
    expect(before).toEqual(after)
  })

  it('stops at a bad variable with its name, and shows no stack', async () => {
    const { code, stderr } = await run(['status', '--config', shop], {
      variables: { HOOKLEDGER_SCHEMA: 'x;y' },
    })
    expect(code).toBe(2)
    expect(stderr).toMatch(/^hookledger: HOOKLEDGER_SCHEMA [^\n]+\n$/)
    expect(
      (await run(['start', '--config', shop], { variables: { PORT: 'abc' } })).stderr,
    ).toContain('PORT')
    expect(
      (await run(['dev', '--config', shop], { variables: { LOG_LEVEL: 'loud' } })).stderr,
    ).toContain('LOG_LEVEL')
    const noDirectory = await run(['dev', '--config', shop], {
      variables: { HOOKLEDGER_DATA_DIR: shop },
    })
    expect([noDirectory.code, noDirectory.stderr]).toEqual([
      2,
      expect.stringMatching(/^hookledger: HOOKLEDGER_DATA_DIR must be a directory [^\n]+\n$/),
    ])
  })

  it('shows stacks with LOG_LEVEL=debug only', async () => {
    expect((await run(['statu'])).stderr).not.toContain('run-cli.ts')
    expect((await run(['statu'], { variables: { LOG_LEVEL: 'debug' } })).stderr).toContain(
      'run-cli.ts',
    )
  })

  it('says that there is no configuration, and no database', async () => {
    const lost = await run(['status'], { cwd: '/' })
    expect([lost.code, lost.stdout]).toEqual([2, ''])
    expect(lost.stderr).toContain('hookledger init')
    const unconnected = await run(['status', '--config', shop], { variables: { DATABASE_URL: '' } })
    expect(unconnected.code).toBe(2)
    expect(unconnected.stderr).toContain('set DATABASE_URL, or start "hookledger dev" first')
  })

  it('says in one line that a database does not answer', async () => {
    const { code, stderr } = await run(['status', '--config', shop], {
      variables: { DATABASE_URL: 'postgres://u:hunter2@127.0.0.1:1/d' },
    })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^hookledger: cannot reach PostgreSQL at 127\.0\.0\.1:1 [^\n]+\n$/)
    expect(stderr).not.toContain('hunter2')
  })
})

describe('hookledger graph', () => {
  it('draws one workflow or all, as text or as JSON lines', async () => {
    const all = await run(['graph', '--config', shop])
    expect(all.stdout.match(/stateDiagram-v2/g)).toHaveLength(3)
    const rows = (await run(['graph', '--json', '--config', shop])).stdout.trimEnd().split('\n')
    expect(rows.map((row) => (JSON.parse(row) as { workflow: string }).workflow).sort()).toEqual([
      'credits',
      'license',
      'saas',
    ])
    const none = await run(['graph', 'licence', '--config', shop])
    expect([none.code, none.stderr]).toEqual([
      1,
      'hookledger: no workflow is named "licence", did you mean "license"? (HKL_NOT_FOUND)\n',
    ])
  })
})
