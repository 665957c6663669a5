// What can be wrong with the configuration of the node proxy; the process does not start then.

export class ConfigError extends Error {
  readonly code = 'INVALID_CONFIG'
}

export const invalidVariable = (name: string, value: string, why: string): ConfigError =>
  new ConfigError(`invalid env var ${name}=${value} (${why})`)
