import { existsSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'
import { headings, page, pages, prose, root, type Page } from './pages.ts'

const documents = pages()

/** Targets of links, without those to other sites. */
function linksOf({ text }: Page): string[] {
  return [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
}

function problemOf(document: Page, link: string): string | null {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? document.path : normalize(join(dirname(document.path), path))
  if (!existsSync(join(root, target))) return `${link}: there is no ${target}`
  if (anchor === undefined || !target.endsWith('.md')) return null
  const anchors = headings(page(target).text).map((each) => each.anchor)
  return anchors.includes(anchor) ? null : `${link}: ${target} has no heading for it`
}

describe.each(documents)('$path', (document) => {
  it('links to what exists', () => {
    expect(linksOf(document).flatMap((link) => problemOf(document, link) ?? [])).toEqual([])
  })

  it('names files that exist', () => {
    const named = [
      ...document.text.matchAll(
        /`((?:src|test|examples|scripts|migrations|bench)\/[\w./-]+\.\w+)`/g,
      ),
    ]
    expect(named.flatMap(([, path = '']) => (existsSync(join(root, path)) ? [] : [path]))).toEqual(
      [],
    )
  })

  it('uses American spelling', () => {
    const british =
      /\b(?:behaviou?r(?<!behavior)|colou?r(?<!color)s?|cancell(?:ed|ing)|fulfil(?!l)\w*|honou?r(?<!honor)\w*|serialis\w+|normalis\w+|recognis\w+|organis\w+|licence|catalogue)\b/gi
    expect(document.text.match(british) ?? []).toEqual([])
  })
})

describe('documents', () => {
  it('are all reachable from the README or the index', () => {
    const reached = new Set(['README.md'])
    const waiting = ['README.md']
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const from = next
      for (const link of linksOf(page(from))) {
        const target = normalize(join(dirname(from), link.split('#')[0] ?? ''))
        if (!target.endsWith('.md') || reached.has(target) || !existsSync(join(root, target)))
          continue
        reached.add(target)
        waiting.push(target)
      }
    }
    const known = documents.map((each) => each.path).filter((path) => path !== 'CHANGELOG.md')
    expect(known.filter((path) => !reached.has(path))).toEqual([])
  })
})
