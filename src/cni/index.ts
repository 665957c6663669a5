// The CNI plugin and the node agent. In: the container runtime's calls, pods and namespaces of this node. Out: redirection rules in pods'
// network namespaces, namespaces handed to the node proxy, the plugin installed on the node.
export { createEnrollmentController, type Enrollment, type EnrollmentController } from './agent/controller.ts'
export { type AgentOptions, runAgent } from './agent/process.ts'
export {
  defaultEnablementSelectors,
  type EnablementSelector,
  isEligible,
  redirectionAnnotation,
} from './eligibility.ts'
export { type AddEvent, addPod } from './plugin/add.ts'
export { CniError, parseCniArgs, parsePluginConfig } from './plugin/config.ts'
export { type PluginOutput, runPlugin } from './plugin/main.ts'
export { resultOf } from './plugin/result.ts'
export { type AgentSettings, agentSettings, SettingsError } from './settings.ts'
