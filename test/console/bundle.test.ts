import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { builtConsole } from '../support/built-console.ts'

const dist = fileURLToPath(new URL('../../console/dist', import.meta.url))
const token = '/__hookledger_prefix__'

beforeAll(builtConsole, 120_000)

const files = (): { name: string; bytes: Buffer }[] =>
  readdirSync(dist, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => ({ name, bytes: readFileSync(join(parentPath, name)) }))

describe('the built console', () => {
  it('stays under 150 KB gzip in all', () => {
    const sizes = files().map(({ name, bytes }) => [name, gzipSync(bytes).length] as const)
    const total = sizes.reduce((sum, [, size]) => sum + size, 0)
    expect(total, JSON.stringify(sizes)).toBeLessThan(150_000)
  })

  it('loads below any path: the page names the prefix, and no other file does', () => {
    for (const { name, bytes } of files()) {
      if (name !== 'index.html') expect(bytes.includes(token), name).toBe(false)
    }
    const page = readFileSync(join(dist, 'index.html'), 'utf8')
    expect(page).toContain(`<meta name="hookledger-prefix" content="${token}"`)
    const loaded = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address)
    expect(loaded.length).toBeGreaterThan(2)
    for (const address of loaded)
      expect(address).toMatch(/^\/__hookledger_prefix__\/console\/assets\//)
  })

  it('has nothing that its policy would refuse: no inline script or style, no other host', () => {
    const page = readFileSync(join(dist, 'index.html'), 'utf8')
    expect(page).not.toMatch(/<style|style=|<script(?![^>]*\ssrc=)|\son\w+=|javascript:/)
    const styles = files().filter(({ name }) => name.endsWith('.css'))
    expect(styles).toHaveLength(1)
    for (const { bytes } of styles) expect(bytes.toString()).not.toMatch(/@import|url\(|https?:/)
  })
})
