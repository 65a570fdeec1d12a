import type { ArgsDef, CommandDef } from 'citty'
import { describe, expect, it } from 'vitest'
import { sharedArgs } from '../../src/cli/command.ts'
import { commands } from '../../src/cli/commands.ts'
import { exitCodeOf } from '../../src/cli/exit-codes.ts'
import { errorCodes, type ErrorCode } from '../../src/core/errors.ts'
import { blocks, headings, page, pages, section, tableRows } from './pages.ts'

const { text } = page('docs/reference/cli.md')

interface Registered {
  readonly name: string
  readonly args: ArgsDef
}

/** Commands that do something, with the words that call them; hidden ones are nobody's business. */
async function registered(): Promise<Registered[]> {
  const found: Registered[] = []
  for (const [name, load] of Object.entries(commands)) {
    const command = await load()
    if ((command.meta as { hidden?: boolean }).hidden === true) continue
    const below = command.subCommands as Readonly<Record<string, CommandDef>> | undefined
    if (below === undefined) found.push({ name, args: command.args as ArgsDef })
    for (const [word, sub] of Object.entries(below ?? {})) {
      found.push({ name: `${name} ${word}`, args: sub.args as ArgsDef })
    }
  }
  return found
}

/** `ORDER`, `--limit`: how an argument is written. */
function written(args: ArgsDef): string[] {
  return Object.entries(args).map(([name, { type }]) =>
    type === 'positional' ? name.toUpperCase() : `--${name}`,
  )
}

function documentedOptions(heading: string): string[] {
  return tableRows(section(text, heading)).map(([option = '']) => option.split(' ')[0] ?? '')
}

const all = await registered()

describe('docs/reference/cli.md', () => {
  it('has a heading for every command, and no other', () => {
    const titles = headings(section(text, 'Commands')).map((each) => each.title)
    expect(titles).toEqual(expect.arrayContaining(all.map((each) => each.name)))
    expect(titles).toHaveLength(all.length)
  })

  it.each(all)('lists the options of $name, and no other', ({ name, args }) => {
    const own = Object.fromEntries(
      Object.entries(args).filter(([arg]) => !Object.hasOwn(sharedArgs, arg)),
    )
    expect(documentedOptions(name).sort()).toEqual(written(own).sort())
  })

  it('lists the options of every command', () => {
    const shared = written(sharedArgs).map((option) =>
      option === '--color' ? '--no-color' : option,
    )
    expect(documentedOptions('Options of every command').sort()).toEqual(shared.sort())
  })
})

describe('docs/reference/errors.md', () => {
  it.each(Object.keys(errorCodes) as ErrorCode[])('says whether %s is wrong use', (code) => {
    const said = /Exit 2\./.test(section(page('docs/reference/errors.md').text, code))
    expect(said).toBe(exitCodeOf(code) === 2)
  })
})

/** Calls of the command line in shell blocks: the words after `hookledger`, without comments. */
function calls(): { readonly page: string; readonly words: readonly string[] }[] {
  return pages()
    .flatMap(blocks)
    .filter((block) => ['sh', 'bash', 'shell'].includes(block.language))
    .flatMap((block) =>
      block.text.split('\n').flatMap((line) => {
        const called = /(?:^|\s)(?:npx hookledger|run --silent hookledger --) ((?:[^#]|#\S)*)/.exec(
          line.replace(/\s#\s.*$/, ''),
        )
        return called === null
          ? []
          : [{ page: block.page, words: (called[1] ?? '').trim().split(/\s+/) }]
      }),
    )
}

describe('shell blocks of documents', () => {
  it.each(calls())('call what exists: $page $words', ({ words }) => {
    const two = all.find(({ name }) => name === words.slice(0, 2).join(' '))
    const found =
      two ??
      all.find(({ name }) => name === words[0]) ??
      all.find(({ name }) => name === `${words[0]} list`)
    expect(found, `no command ${words.join(' ')}`).toBeDefined()
    const known = new Set([...written(found?.args ?? {}), '--no-color', '--no-simulate', '--help'])
    const used = words
      .filter((word) => word.startsWith('--'))
      .map((word) => word.split('=')[0] ?? '')
    expect(used.filter((option) => !known.has(option))).toEqual([])
  })
})
