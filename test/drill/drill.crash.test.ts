import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/test-database.ts'
import { drillWallet, runDrillCommand, walletConfig } from './spawned-drill.ts'

const directory = mkdtempSync(join(tmpdir(), 'hookledger-drill-test-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const faultsOf = (report: { readonly faults: readonly { readonly fault: string }[] }): string[] =>
  report.faults.map(({ fault }) => fault)

describe('a drill in memory', () => {
  it('passes a workflow in which nothing is wrong, and says that this is no release decision', async () => {
    const { code, report } = await drillWallet('nothing', ['--only', 'pure'])
    expect(report.faults).toEqual([])
    expect(report.go).toBe(true)
    expect(report.not_a_release_decision).toContain('only pure')
    expect(report.in_memory['orders']).toBeGreaterThan(1)
    expect(code).toBe(0)
  })

  it.each([
    ['sends', 'sends_outside_outbox'],
    ['memory', 'state_in_memory'],
    ['event key', 'effect_keyed_by_event'],
    ['keeps after refund', 'refund_ignored'],
  ])('names what is wrong with a workflow: %s', async (wrong, fault) => {
    const { code, report } = await drillWallet(wrong, ['--only', 'pure'])
    expect(faultsOf(report)).toContain(fault)
    expect(report.go).toBe(false)
    expect(code).toBe(3)
  })

  it('refuses a workflow without histories: nothing can be said of what is not played', async () => {
    const { code, stderr } = await runDrillCommand(['--config', walletConfig], {
      WALLET_FAULT: 'no histories',
    })
    expect(stderr).toContain('workflow "wallet" has no histories')
    expect(code).toBe(2)
  })
})

describe('a drill with processes', () => {
  it('plays cases by their names, in which everything that goes wrong is survived', async () => {
    const names = [
      'kill/R8.kill/wallet/bought/0',
      'kill/W6.kill/wallet/bought/0',
      'kill/D2.kill/wallet/bought/0',
      'kill/W3.stop/wallet/bought/0',
      'kill/W3.throw/wallet/bought-and-paid-back/0.1',
      'kill/D0.dbreset/wallet/bought/0',
      'commit/work.drop-after/wallet/bought/0',
      'commit/receive.drop-before/wallet/bought/0',
      'postgres/kill/wallet/bought-and-paid-back/0.1',
      'destination/lose/wallet/bought/0',
      'reconcile/lost/wallet/bought-and-paid-back/0.1',
      'reconcile/C3.kill/wallet/bought/0',
      'simultaneous/-/wallet/bought-and-paid-back/0.1',
      'duplicate/-/wallet/bought/0',
      'twin/-/wallet/bought/0.1',
      'permutation/-/wallet/bought-and-paid-back/1.0',
      'off/-/wallet/bought/0',
    ]
    const { code, report } = await drillWallet('nothing', ['--case', names.join(',')])
    expect(report.faults).toEqual([])
    expect(report.cases.map((each) => each.case)).toEqual(names)
    expect(report.cases.filter(({ exercised, holds }) => !exercised || !holds)).toEqual([])
    expect(report.recovery.length).toBeGreaterThan(0)
    expect(report.not_a_release_decision).toContain('only the cases that were named')
    expect(code).toBe(0)
  })

  it.each([
    ['own connection', 'kill/W6.kill/wallet/bought/0', 'apply_outside_transaction'],
    ['early answer', 'kill/R6.kill/wallet/bought/0', 'acknowledged_lost'],
    ['no index', 'kill/R8.kill/wallet/bought/0', 'unique_index_missing'],
    ['new id', 'destination/lose/wallet/bought/0', 'operation_id_changed'],
    ['swallows', 'destination/refuse/wallet/bought/0', 'confirmed_without_answer'],
  ])('names what is wrong: %s', async (wrong, name, fault) => {
    const { code, report } = await drillWallet(wrong, ['--case', name])
    expect(faultsOf(report)).toContain(fault)
    const found = report.faults.find((each) => each.fault === fault)
    expect(found?.replay).toContain(`--case ${name}`)
    expect(report.promises.find(({ id }) => id === found?.promise)?.holds).toBe(false)
    expect(code).toBe(3)
  })

  it('tells the smallest schedule that shows a fault, with the command that plays it', async () => {
    const { report } = await drillWallet('own connection', [
      '--case',
      'kill/W6.kill/wallet/bought-and-paid-back/0.1',
    ])
    const found = report.faults.find(({ fault }) => fault === 'apply_outside_transaction')
    expect(found?.schedule).toEqual([expect.stringContaining('checkout.session.completed')])
    expect(found?.replay).toContain('--case kill/W6.kill/wallet/bought-and-paid-back/0')
    expect(found?.replay).not.toContain('0.1')
  })

  it('plays what a budget allows, writes JUnit and one page, and says what it left out', async () => {
    const [junit, html] = [join(directory, 'drill.xml'), join(directory, 'drill.html')]
    const { stdout, stderr, code } = await runDrillCommand(
      ['--config', walletConfig, '--budget', '20s', '--junit', junit, '--html', html],
      { WALLET_FAULT: 'nothing' },
    )
    expect(stdout).toContain('not a release decision')
    expect(stdout).toContain('left out:')
    expect(stdout).not.toContain('BROKEN')
    expect([0, 3], stderr).toContain(code)
    expect(stdout).toContain(code === 0 ? 'GO:' : 'NO GO: no case put')
    expect(readFileSync(junit, 'utf8')).toContain('<testsuite name="hookledger drill"')
    const page = readFileSync(html, 'utf8')
    expect(page).toContain('Not a release decision')
    expect(page).not.toMatch(/<script|src=|href=/)
  })
})

describe('the database of a drill', () => {
  it('refuses one that is not empty, before it writes anything', async () => {
    const database = await createTestDatabase()
    const pool = database.pool()
    try {
      await pool.query('create table precious (id integer)')
      const { code, stderr } = await runDrillCommand(
        [
          '--config',
          walletConfig,
          '--case',
          'off/-/wallet/bought/0',
          '--database-url',
          database.url,
        ],
        { WALLET_FAULT: 'nothing' },
      )
      expect(stderr).toContain('the database is not empty')
      expect(code).toBe(2)
      const { rows } = await pool.query(
        `select count(*)::int as n from pg_namespace where nspname = 'hookledger'`,
      )
      expect(rows).toEqual([{ n: 0 }])
    } finally {
      await database.drop()
    }
  })

  it('takes an empty one and leaves it empty', async () => {
    const database = await createTestDatabase()
    const pool = database.pool()
    try {
      const { code, stdout, stderr } = await runDrillCommand(
        [
          '--config',
          walletConfig,
          '--case',
          'off/-/wallet/bought/0',
          '--database-url',
          database.url,
        ],
        { WALLET_FAULT: 'nothing' },
      )
      expect(stdout, stderr).toContain('GO')
      expect(code).toBe(0)
      const { rows } = await pool.query(
        `select nspname from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'`,
      )
      expect(rows).toEqual([{ nspname: 'public' }])
    } finally {
      await database.drop()
    }
  })
})
