/** Takes the types out of one file, and tells where its lines were. */
const ts = require('typescript')

const compilerOptions = {
  module: ts.ModuleKind.ESNext,
  target: ts.ScriptTarget.ES2023,
  verbatimModuleSyntax: true,
  inlineSourceMap: true,
}

module.exports = {
  process: (source, fileName) => ({
    code: ts.transpileModule(source, { fileName, compilerOptions }).outputText,
  }),
}
