import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { devFilePath, findRunningDev, removeDevFile, writeDevFile } from '../../src/cli/dev-file.ts'

let directory: string
const content = {
  url: 'http://127.0.0.1:4000',
  databaseUrl: 'postgres://u:p@127.0.0.1:1/d',
  pid: process.pid,
  providerUrl: 'http://127.0.0.1:2',
  emailUrl: 'http://127.0.0.1:3/emails',
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'hookledger-devfile-'))
})

afterEach(() => rmSync(directory, { recursive: true }))

describe('dev.json', () => {
  it('names url, databaseUrl, pid, providerUrl and emailUrl, readable by its owner only', () => {
    writeDevFile(directory, content)
    expect(JSON.parse(readFileSync(devFilePath(directory), 'utf8'))).toMatchObject(content)
    expect(statSync(devFilePath(directory)).mode & 0o777).toBe(0o600)
    expect(findRunningDev(directory)).toMatchObject(content)
  })

  it('is not believed of a process that is gone, or of a process id that was given out again', () => {
    writeDevFile(directory, { ...content, pid: 2 ** 22 + 1 })
    expect(findRunningDev(directory)).toBeNull()
    writeDevFile(directory, content)
    const text = readFileSync(devFilePath(directory), 'utf8')
    writeFileSync(
      devFilePath(directory),
      text.replace(/"startedAt": "[^"]*"/, '"startedAt": "another time"'),
    )
    expect(findRunningDev(directory)).toBeNull()
  })

  it.each(['', '{', 'null', '[]', '{"url": 1}', '{"pid": 1}'])(
    'is not believed when it says %j',
    (text) => {
      writeFileSync(devFilePath(directory), text)
      expect(findRunningDev(directory)).toBeNull()
    },
  )

  it('is removed by the process that wrote it, and by no other', () => {
    writeDevFile(directory, { ...content, pid: process.ppid })
    removeDevFile(directory)
    expect(findRunningDev(directory)).not.toBeNull()
    writeDevFile(directory, content)
    removeDevFile(directory)
    expect(findRunningDev(directory)).toBeNull()
    removeDevFile(directory)
  })
})
