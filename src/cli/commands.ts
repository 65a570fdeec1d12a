/** The commands; each is loaded when it is asked for. */
import type { CommandDef } from 'citty'

type Lazy = () => Promise<CommandDef>

/** Every command by name, in the order in which help lists them. */
export const commands: Readonly<Record<string, Lazy>> = {
  dev: async () => (await import('./dev.ts')).devCommand,
  start: async () => (await import('./start.ts')).startCommand,
  init: async () => (await import('./init.ts')).initCommand,
  migrate: async () => (await import('./migrate.ts')).migrateCommand,
  doctor: async () => (await import('./doctor.ts')).doctorCommand,
  status: async () => (await import('./status.ts')).statusCommand,
  explain: async () => (await import('./explain.ts')).explainCommand,
  audit: async () => (await import('./audit.ts')).auditCommand,
  reconcile: async () => (await import('./reconcile.ts')).reconcileCommand,
  findings: async () => (await import('./findings.ts')).findingsCommand,
  repair: async () => (await import('./repair.ts')).repairCommand,
  dead: async () => (await import('./dead.ts')).deadCommand,
  outbox: async () => (await import('./outbox.ts')).outboxCommand,
  grant: async () => (await import('./grant.ts')).grantCommand,
  subject: async () => (await import('./subject.ts')).subjectCommand,
  adopt: async () => (await import('./adopt.ts')).adoptCommand,
  drill: async () => (await import('./drill.ts')).drillCommand,
  shadow: async () => (await import('./shadow.ts')).shadowCommand,
  replay: async () => (await import('./replay.ts')).replayCommand,
  send: async () => (await import('./send.ts')).sendCommand,
  graph: async () => (await import('./graph.ts')).graphCommand,
  erase: async () => (await import('./erase.ts')).eraseCommand,
  prune: async () => (await import('./prune.ts')).pruneCommand,
  'internal-drill': async () => (await import('./drill-child.ts')).drillChildCommand,
  'internal-work': async () => (await import('./work.ts')).workCommand,
}
