// The dependency rule of ARCHITECTURE.md: each floor needs only the floors under it.
const floors = {
  core: [],
  workflow: ['core'],
  postgres: ['core', 'workflow'],
  worker: ['core', 'workflow'],
  providers: ['core', 'workflow'],
  observe: ['core', 'workflow'],
  adapters: ['core', 'workflow', 'postgres'],
  inbox: ['core', 'workflow', 'postgres'],
  ledger: ['core', 'workflow', 'postgres'],
  outbox: ['core', 'workflow', 'postgres'],
  reconciliation: ['core', 'workflow', 'postgres'],
  report: ['core', 'workflow', 'postgres'],
  compose: [
    'core',
    'workflow',
    'postgres',
    'worker',
    'providers',
    'observe',
    'adapters',
    'inbox',
    'ledger',
    'outbox',
    'reconciliation',
    'report',
  ],
  http: ['core', 'hookledger.ts'],
  api: ['core', 'workflow', 'postgres', 'inbox', 'outbox', 'report', 'compose'],
  testing: ['core', 'workflow', 'postgres', 'providers', 'hookledger.ts'],
  server: ['core', 'postgres', 'compose', 'api', 'hookledger.ts', 'http', 'observe'],
  cli: [
    'core',
    'postgres',
    'inbox',
    'worker',
    'compose',
    'report',
    'observe',
    'hookledger.ts',
    'server',
    'testing',
  ],
}
const target = (name) =>
  name.endsWith('.ts') ? `^src/${name.replace('.', '\\.')}$` : `^src/${name}/`
const rules = Object.entries(floors).map(([floor, allowed]) => ({
  name: `floor-${floor}`,
  comment: `${floor} may import only: ${allowed.join(', ') || 'nothing'}`,
  severity: 'error',
  from: { path: `^src/${floor}/` },
  to: { path: '^src/', pathNot: [`^src/${floor}/`, ...allowed.map(target)] },
}))
module.exports = {
  forbidden: [
    ...rules,
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-orphans',
      severity: 'error',
      from: {
        orphan: true,
        path: '^src/',
        pathNot: ['^src/index\\.ts$', '^src/testing/index\\.ts$', '^src/cli/main\\.ts$'],
      },
      to: {},
    },
    {
      name: 'pure-floors',
      comment: 'core and workflow import not even node:*',
      severity: 'error',
      from: { path: '^src/(core|workflow)/' },
      to: { dependencyTypes: ['core', 'npm', 'npm-dev', 'npm-peer'] },
    },
    {
      name: 'pg-in-postgres-only',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/(postgres|testing)/'] },
      to: { path: 'node_modules/pg/' },
    },
    {
      name: 'nobody-imports-the-face',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^src/index\\.ts$' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
}
