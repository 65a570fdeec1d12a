/** Reads what an interface declares from its source, since a type is gone when code runs. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { root } from './pages.ts'

/** The names of an interface's own members, in their order. */
export function membersOf(file: string, name: string): string[] {
  const source = ts.createSourceFile(
    file,
    readFileSync(join(root, file), 'utf8'),
    ts.ScriptTarget.Latest,
  )
  const found = source.statements.find(
    (each): each is ts.InterfaceDeclaration =>
      ts.isInterfaceDeclaration(each) && each.name.text === name,
  )
  if (found === undefined) throw new Error(`${file} declares no interface ${name}`)
  return found.members.flatMap((member) => {
    const { name: key } = member
    return key !== undefined && (ts.isIdentifier(key) || ts.isStringLiteral(key)) ? [key.text] : []
  })
}
