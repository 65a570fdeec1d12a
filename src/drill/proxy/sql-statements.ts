/** Just enough of SQL's surface to see in a text where transactions begin and end. */

/** What a statement does to the transaction; `read` is one that by its look cannot write. */
export type StatementKind = 'begin' | 'commit' | 'rollback' | 'read' | 'other'

// Quoted text in all its forms, comments, and what separates statements.
const token =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|\$([A-Za-z_]\w*)?\$[\s\S]*?\$\1\$|--[^\n]*|\/\*[\s\S]*?\*\/|;/g

/** Splits a query text at the semicolons that separate statements; comments are dropped. */
export function splitStatements(sql: string): string[] {
  const statements: string[] = []
  let current = ''
  let end = 0
  for (const match of sql.matchAll(token)) {
    current += sql.slice(end, match.index)
    end = match.index + match[0].length
    if (match[0] === ';') {
      statements.push(current)
      current = ''
    } else {
      current += /^(--|\/\*)/.test(match[0]) ? ' ' : match[0]
    }
  }
  statements.push(current + sql.slice(end))
  return statements.map((statement) => statement.trim()).filter((statement) => statement !== '')
}

/** Classifies one statement without comments. */
export function classifyStatement(statement: string): StatementKind {
  if (/^(begin|start\s+transaction)\b/i.test(statement)) return 'begin'
  if (/^(commit|end)\b/i.test(statement)) return 'commit'
  if (/^rollback\s+((work|transaction)\s+)?to\b/i.test(statement)) return 'other'
  if (/^(rollback|abort|prepare\s+transaction)\b/i.test(statement)) return 'rollback'
  const harmless =
    /^(select|values|table|show|explain|fetch|close|declare|set|reset|discard|listen|unlisten|deallocate)\b/i
  return harmless.test(statement) ? 'read' : 'other'
}
