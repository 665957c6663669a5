// Verification of the running sample application.
export { type CheckResult, resultText } from './report.ts'
export { checkSample, type SampleCheckOptions, sampleNamespaces } from './sample-check.ts'
