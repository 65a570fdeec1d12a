import { describe, expect, it } from 'vitest'
import { finding, findingKinds } from '../../src/workflow/finding-kinds.ts'
import { page, section, tableRows } from './pages.ts'

const rows = tableRows(section(page('docs/reference/findings.md').text, 'Kinds'))

describe('docs/reference/findings.md', () => {
  it('lists every kind that the engine makes, and no other', () => {
    expect(rows.map(([kind]) => kind).sort()).toEqual([...findingKinds].sort())
  })

  it.each(findingKinds.map((kind) => [kind, finding(kind, '', {})] as const))(
    'gives %s the class and severity that it has',
    (kind, made) => {
      const row = rows.find(([name]) => name === kind)
      expect(row?.slice(1, 3)).toEqual([made.class, made.severity])
    },
  )
})
