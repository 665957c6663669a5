// A pod's volumes on the host: made before the first container starts, kept current while the pod runs.
import { existsSync } from 'node:fs'
import { chmod, chown, lstat, mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { run, tryRun } from '../run.ts'
import { writeDirectory } from './atomic-directory.ts'
import { ConfigError } from './environment.ts'
import { expandReferences } from './expand.ts'
import type { Mount } from './mounts.ts'
import type { Container, PodSpec, Volume } from './types.ts'
import { type VolumeSources, volumeFiles } from './volume-files.ts'

/** Makes or refreshes the volumes below `directory`; resolves with each volume's path on the host. */
export async function prepareVolumes(
  spec: PodSpec,
  directory: string,
  sources: VolumeSources,
): Promise<Map<string, string>> {
  const paths = new Map<string, string>()
  for (const volume of spec.volumes ?? []) {
    const path = join(directory, 'volumes', volume.name)
    const files = await volumeFiles(volume, sources)
    if (files !== undefined) {
      await writeDirectory(path, files)
      paths.set(volume.name, path)
    } else {
      paths.set(volume.name, await otherVolume(volume, path, spec.securityContext?.fsGroup))
    }
  }
  return paths
}

async function otherVolume(volume: Volume, path: string, group: number | undefined): Promise<string> {
  if (volume.hostPath) return hostPath(volume.hostPath.path, volume.hostPath.type ?? '')
  if (volume.emptyDir) {
    if (existsSync(path)) return path
    await mkdir(path, { recursive: true })
    if (volume.emptyDir.medium === 'Memory') {
      const size = volume.emptyDir.sizeLimit
      await run(['mount', '-t', 'tmpfs', '-o', size ? `size=${bytes(size)}` : 'size=50%', 'lateen', path])
    }
    await chmod(path, 0o777)
    if (group !== undefined) await chown(path, 0, group)
    return path
  }
  const kind = Object.keys(volume).find((key) => key !== 'name') ?? 'nothing'
  throw new ConfigError(
    `volume ${volume.name} is of type ${kind}: this machine offers emptyDir, hostPath, configMap, secret, downwardAPI and projected`,
  )
}

function bytes(quantity: string): string {
  return quantity.replace(/i$/, '')
}

/** @throws ConfigError when the path is not what the type says. */
async function hostPath(path: string, type: string): Promise<string> {
  const stat = await lstat(path).catch(() => undefined)
  if (type === 'DirectoryOrCreate' && stat === undefined) await mkdir(path, { recursive: true, mode: 0o755 })
  else if (type === 'FileOrCreate' && stat === undefined) {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, '', { flag: 'a', mode: 0o644 })
  } else if (stat === undefined) {
    throw new ConfigError(`hostPath ${path} does not exist`)
  } else if (type === 'Socket' && !stat.isSocket()) throw new ConfigError(`hostPath ${path} is no socket`)
  else if (type === 'File' && !stat.isFile()) throw new ConfigError(`hostPath ${path} is no file`)
  else if (type === 'Directory' && !stat.isDirectory() && !stat.isSymbolicLink()) {
    throw new ConfigError(`hostPath ${path} is no directory`)
  }
  return path
}

/** The container's mounts of the pod's volumes. @throws ConfigError for a mount of an unknown volume or a path that leaves it. */
export async function containerMounts(
  container: Container,
  volumes: ReadonlyMap<string, string>,
  environment: ReadonlyMap<string, string>,
): Promise<Mount[]> {
  const mounts: Mount[] = []
  for (const mount of container.volumeMounts ?? []) {
    const volume = volumes.get(mount.name)
    if (volume === undefined) throw new ConfigError(`container ${container.name} mounts unknown volume ${mount.name}`)
    const subPath = mount.subPathExpr ? expandReferences(mount.subPathExpr, environment) : (mount.subPath ?? '')
    if (subPath.startsWith('/') || subPath.split('/').includes('..')) {
      throw new ConfigError(`sub path ${subPath} leaves volume ${mount.name}`)
    }
    const source = join(volume, subPath)
    if (!existsSync(source)) await mkdir(source, { recursive: true })
    mounts.push({
      source,
      target: mount.mountPath,
      readOnly: mount.readOnly === true,
      ...(mount.mountPropagation === 'HostToContainer' || mount.mountPropagation === 'Bidirectional'
        ? { propagation: mount.mountPropagation }
        : {}),
    })
  }
  return mounts
}

/** Unmounts what `prepareVolumes` mounted; the files are the caller's to remove. */
export async function unmountVolumes(directory: string): Promise<void> {
  const root = join(directory, 'volumes')
  for (const name of existsSync(root) ? await readdir(root) : []) {
    await tryRun(['umount', '--lazy', '--quiet', join(root, name)])
  }
}
