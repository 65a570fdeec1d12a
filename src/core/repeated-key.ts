/**
 * A key that stands twice in one JSON object: `JSON.parse` keeps the last value and says nothing, which would
 * make the other one silently untrue. Pure.
 */

/** The first repeated key of a text that is known to be JSON; null where every object says each key once. */
export function repeatedKey(json: string): string | null {
  // of each open object its keys; null for an array
  const open: (Set<string> | null)[] = []
  const token = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}[\]]/g
  for (const [text, isKey] of json.matchAll(token)) {
    if (text === '{') open.push(new Set())
    else if (text === '[') open.push(null)
    else if (text === '}' || text === ']') open.pop()
    else if (isKey !== undefined) {
      const key = JSON.parse(text.slice(0, -isKey.length)) as string
      const keys = open.at(-1)
      if (keys?.has(key) === true) return key
      keys?.add(key)
    }
  }
  return null
}
