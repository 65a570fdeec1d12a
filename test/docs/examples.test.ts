import { dirname, join } from 'node:path'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { writeExamples, type ExampleProject } from './example-project.ts'
import { blocks, pages, root } from './pages.ts'

const documents = pages()
const examples = documents.flatMap(blocks).filter((block) => block.file !== null)
const withRunnable = documents.filter((document) => blocks(document).some((block) => block.run))

/** Compiles the TypeScript of every document with the repository's options, in memory. */
function compile(): Map<string, string[]> {
  const { config } = ts.readConfigFile(
    join(root, 'tsconfig.json'),
    ts.sys.readFile.bind(ts.sys),
  ) as {
    config: { compilerOptions: { paths: Record<string, string[]> } }
  }
  const { options } = ts.parseJsonConfigFileContent(
    { ...config, include: [], files: [] },
    ts.sys,
    root,
  )
  const paths = {
    ...config.compilerOptions.paths,
    'hookledger/node': ['./src/http/node.ts'],
    'hookledger/express': ['./src/http/express.ts'],
    'hookledger/fastify': ['./src/http/fastify.ts'],
  }
  const files = new Map(
    examples
      .filter((block) => block.file?.endsWith('.ts'))
      .map((block) => [
        join(root, '.docs', block.page.replaceAll('/', '_'), block.file ?? ''),
        block,
      ]),
  )
  const host = ts.createCompilerHost(options)
  const { readFile, fileExists } = host
  host.readFile = (name) => files.get(name)?.text ?? readFile.call(host, name)
  host.fileExists = (name) => files.has(name) || fileExists.call(host, name)
  const directories = new Set([...files.keys()].map((name) => dirname(name)))
  host.directoryExists = (name) => directories.has(name) || ts.sys.directoryExists(name)
  host.getSourceFile = (name, target) => {
    const text = host.readFile(name)
    return text === undefined ? undefined : ts.createSourceFile(name, text, target)
  }
  const program = ts.createProgram([...files.keys()], { ...options, paths, noEmit: true }, host)
  const problems = new Map<string, string[]>()
  for (const [name, block] of files) {
    const found = ts.getPreEmitDiagnostics(program, program.getSourceFile(name)).map((each) => {
      const line =
        each.start === undefined
          ? 0
          : (each.file?.getLineAndCharacterOfPosition(each.start).line ?? 0)
      return `line ${line + 1}: ${ts.flattenDiagnosticMessageText(each.messageText, ' ')}`
    })
    problems.set(`${block.page} ${block.file}`, found)
  }
  return problems
}

describe('the code that documents show', () => {
  let problems: Map<string, string[]>
  beforeAll(() => {
    problems = compile()
  }, 120_000)

  it.each(examples.filter((block) => block.file?.endsWith('.ts')))(
    'compiles: $page $file',
    ({ page, file }) => {
      expect(problems.get(`${page} ${file}`)).toEqual([])
    },
  )

  it('gives every TypeScript block a file name, so that none escapes the compiler', () => {
    const nameless = documents
      .flatMap(blocks)
      .filter((block) => block.language === 'ts' && block.file === null)
    expect(nameless.map((block) => `${block.page}:${block.line}`)).toEqual([])
  })
})

describe.each(withRunnable)('the examples of $path that say they run', (document) => {
  let project: ExampleProject
  beforeAll(() => {
    project = writeExamples(document)
  })
  afterAll(() => project.remove())

  it.each(blocks(document).filter((block) => block.run))('$file runs', async ({ file }) => {
    await expect(project.load(file ?? '')).resolves.toBeDefined()
  })
})
