#!/usr/bin/env node
/**
 * The program `hookledger`. Ends with the command's exit code as soon as its output is written: what a
 * configuration keeps open (a pool of its own, say) must not hold it.
 */
import { installFaultPlanOf } from '../testing/fault-plan.ts'
import { Environment } from './environment.ts'
import { tellFailure } from './failure.ts'
import { runCli } from './run-cli.ts'

/** How this command line is called in a checkout, where a script of it says so. */
const program = (globalThis as { hookledgerProgram?: string }).hookledgerProgram ?? 'npx hookledger'

for (const stream of [process.stdout, process.stderr]) {
  // a reader that has seen enough (`| head`) closes the pipe: that is no failure
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
}

const exitCode =
  faultsAreWrong() ??
  (await runCli(process.argv.slice(2), {
    environment: new Environment(),
    cwd: process.cwd(),
    program,
    stdout: process.stdout,
    stderr: process.stderr,
  }))
process.stdout.write('', () => process.exit(exitCode))

/** Installs the faults that a test has planned for this process; the exit code where the plan is wrong. */
function faultsAreWrong(): number | null {
  try {
    installFaultPlanOf(process.env)
    return null
  } catch (error) {
    const { line, exitCode: code } = tellFailure(error)
    process.stderr.write(`hookledger: ${line}\n`)
    return code
  }
}
