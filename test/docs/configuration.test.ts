import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { defaultLimits } from '../../src/core/limits.ts'
import { resolveOptions } from '../../src/compose/options.ts'
import { defaultContract } from '../../src/outbox/destination.ts'
import { stripe } from '../../src/providers/stripe.ts'
import { defaultReconcileSettings } from '../../src/reconciliation/settings.ts'
import { membersOf } from './interfaces.ts'
import { page, root, section, tableRows } from './pages.ts'

const { text } = page('docs/reference/configuration.md')

/** The first table under a heading, without what stands under headings below it. */
function documented(heading: string): string[][] {
  return tableRows(section(text, heading).split(/^#/m)[0] ?? '')
}

function names(heading: string): string[] {
  return documented(heading).flatMap(([name = '']) => name.split(', '))
}

describe('docs/reference/configuration.md', () => {
  it.each([
    ['Options of createHookledger', 'src/compose/options.ts', 'HookledgerOptions'],
    ['Findings', 'src/compose/options.ts', 'FindingOptions'],
    ['Console', 'src/compose/console-options.ts', 'ConsoleOptions'],
    ['oidc', 'src/server/console/oidc.ts', 'OidcOptions'],
    ['Reconciliation', 'src/reconciliation/settings.ts', 'ReconcileSettings'],
    ['Sources', 'src/providers/source-options.ts', 'SourceOptions'],
    ['stripe', 'src/providers/stripe.ts', 'StripeOptions'],
    ['standardWebhooks', 'src/providers/standard-webhooks.ts', 'StandardWebhooksOptions'],
    ['customRecords', 'src/providers/custom-records.ts', 'CustomRecordsOptions'],
    ['stripeCalls', 'src/outbox/destinations/stripe.ts', 'StripeCallsOptions'],
    ['custom', 'src/outbox/destinations/custom.ts', 'CustomOptions'],
    ['contract', 'src/outbox/destination.ts', 'DestinationContract'],
  ])('lists under "%s" every option that there is, and no other', (heading, file, name) => {
    expect(names(heading).sort()).toEqual(membersOf(file, name).sort())
  })

  it('lists under "http" every option that there is, and no other', () => {
    const folder = 'src/outbox/destinations'
    const members = [
      ...membersOf(`${folder}/http-options.ts`, 'HttpOptions'),
      ...membersOf(`${folder}/url-rules.ts`, 'UrlRules'),
      ...membersOf(`${folder}/http-answer.ts`, 'AnswerReading'),
    ]
    expect(names('http').sort()).toEqual(members.sort())
  })

  it('gives the contract of a destination with its defaults', () => {
    const told = documented('contract').map(([name, value = '']) => [
      name,
      JSON.parse(value.replaceAll("'", '"')) as unknown,
    ])
    expect(Object.fromEntries(told)).toEqual(defaultContract)
  })

  it('gives every option of reconciliation with its default', () => {
    const told = documented('Reconciliation').map(([name, value = '']) => [
      name,
      JSON.parse(value.replaceAll("'", '"')) as unknown,
    ])
    expect(Object.fromEntries(told)).toEqual(defaultReconcileSettings)
  })

  it('gives every limit with its default', () => {
    const limits = documented('Limits').map(([name, value]) => [name, Number(value)])
    expect(Object.fromEntries(limits)).toEqual(defaultLimits)
  })

  it('tells the defaults of findings', () => {
    const { findings } = resolveOptions({
      sources: { stripe: stripe({ signingSecrets: ['whsec_0123456789abcdef'] }) },
    })
    const said = new Map(documented('Findings').map(([name = '', value]) => [name, value]))
    const hours = {
      lag: findings.dueMs.lag / 3.6e6,
      contradiction: findings.dueMs.contradiction / 3.6e6,
    }
    expect(said.get('owner')).toBe(findings.owner)
    expect(said.get('dueHours')).toBe(
      `{ lag: ${hours.lag}, contradiction: ${hours.contradiction} }`,
    )
  })

  it('lists every environment variable that the code reads, and no other', () => {
    const read = new Set<string>()
    for (const file of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('.ts')) continue
      const code = readFileSync(join(root, 'src', file), 'utf8').replace(
        /^\s*(?:\*|\/\/|\/\*).*$/gm,
        '',
      )
      const reads = /(?:#get|environmentVariable|process\.env\.|process\.env\[)\(?'?([A-Z][A-Z_]+)/g
      for (const [, name = ''] of code.matchAll(reads)) read.add(name)
      for (const [, name = ''] of code.matchAll(/\['(HOOKLEDGER_[A-Z_]+)'\]/g)) read.add(name)
      // `value('A' | 'B')` and `provide('A' | 'B', …)` pass a name on to the reader
      for (const [, union = ''] of code.matchAll(/\(\s*name: ((?:'[A-Z_]+'(?: \| )?)+)/g)) {
        for (const [, name = ''] of union.matchAll(/'([A-Z_]+)'/g)) read.add(name)
      }
    }
    expect(names('Environment variables').sort()).toEqual([...read].sort())
  })
})
