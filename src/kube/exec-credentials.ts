// Credentials from an exec plugin of a kubeconfig (client.authentication.k8s.io ExecCredential).
import { execFile } from 'node:child_process'
import { isAbsolute, resolve } from 'node:path'
import { KubeError } from './errors.ts'

export interface ExecPlugin {
  readonly apiVersion?: string
  readonly command: string
  readonly args?: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value: string }[]
}

export interface ExecCredentials {
  readonly token?: string
  readonly clientCertificate?: string
  readonly clientKey?: string
}

const timeoutMs = 60_000
/** Credentials that end sooner than this are asked for anew. */
const leewayMs = 10_000

/** A function that gives the plugin's credentials, run again when they are about to expire or when `renew` is true. */
export function execCredentials(plugin: ExecPlugin, base: string): (renew: boolean) => Promise<ExecCredentials> {
  let current: { readonly credentials: ExecCredentials; readonly expiresAt: number } | undefined
  let running: Promise<ExecCredentials> | undefined
  return async (renew) => {
    if (running !== undefined) return running
    if (current !== undefined && !renew && Date.now() < current.expiresAt - leewayMs) return current.credentials
    running = runPlugin(plugin, base).then((result) => {
      current = result
      return result.credentials
    })
    try {
      return await running
    } finally {
      running = undefined
    }
  }
}

async function runPlugin(
  plugin: ExecPlugin,
  base: string,
): Promise<{ credentials: ExecCredentials; expiresAt: number }> {
  const apiVersion = plugin.apiVersion ?? 'client.authentication.k8s.io/v1'
  // A command with a slash is relative to the kubeconfig; a bare name is looked up in PATH.
  const command =
    plugin.command.includes('/') && !isAbsolute(plugin.command) ? resolve(base, plugin.command) : plugin.command
  const env = { ...process.env, ...Object.fromEntries((plugin.env ?? []).map(({ name, value }) => [name, value])) }
  const info = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } }
  const output = await new Promise<string>((done, fail) => {
    execFile(
      command,
      [...(plugin.args ?? [])],
      { env: { ...env, KUBERNETES_EXEC_INFO: JSON.stringify(info) }, timeout: timeoutMs, encoding: 'utf8' },
      (error, stdout, stderr) => {
        if (error === null) done(stdout)
        else fail(pluginError(`${command}: ${stderr.trim() || error.message}`, error))
      },
    )
  })
  return parseCredential(command, output)
}

function parseCredential(command: string, output: string): { credentials: ExecCredentials; expiresAt: number } {
  let status: {
    token?: string
    clientCertificateData?: string
    clientKeyData?: string
    expirationTimestamp?: string
  }
  try {
    status = (JSON.parse(output) as { status?: typeof status }).status ?? {}
  } catch (cause) {
    throw pluginError(`${command}: the output is not an ExecCredential in JSON`, cause)
  }
  if (status.token === undefined && status.clientCertificateData === undefined) {
    throw pluginError(`${command}: the ExecCredential has neither a token nor a client certificate`)
  }
  return {
    credentials: {
      ...(status.token === undefined ? {} : { token: status.token }),
      ...(status.clientCertificateData === undefined ? {} : { clientCertificate: status.clientCertificateData }),
      ...(status.clientKeyData === undefined ? {} : { clientKey: status.clientKeyData }),
    },
    expiresAt: status.expirationTimestamp === undefined ? Infinity : Date.parse(status.expirationTimestamp),
  }
}

function pluginError(message: string, cause?: unknown): KubeError {
  return new KubeError(message, { code: 0, reason: 'Credentials', cause })
}
