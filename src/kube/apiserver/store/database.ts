// The SQLite file that holds the state of the embedded API: one row an object, one row a resource with its last revision.
import { chmodSync, closeSync, existsSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

export interface StoredRow {
  readonly resource: string
  readonly namespace: string
  readonly name: string
  readonly revision: number
  readonly value: string
}

const schemaVersion = 1

/**
 * Write-ahead log with `synchronous=NORMAL`: a commit is in the kernel's hands when it returns, so a killed process loses
 * nothing; a power cut may lose the last commits but never leaves a broken file.
 */
export class Database implements Disposable {
  readonly #db: DatabaseSync
  readonly #put
  readonly #remove
  readonly #mark

  constructor(path: string) {
    if (path !== ':memory:') keepPrivate(path)
    this.#db = new DatabaseSync(path)
    try {
      this.#db.exec('PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;')
      this.#createTables(path)
    } catch (cause) {
      this.#db.close()
      if (cause instanceof Error && /locked/.test(cause.message)) {
        throw new Error(`${path} is in use by another API server; stop it first or choose another --state-dir`, {
          cause,
        })
      }
      throw cause
    }
    this.#put = this.#db.prepare(
      'INSERT INTO objects (resource, namespace, name, revision, value) VALUES (?, ?, ?, ?, ?) ' +
        'ON CONFLICT (resource, namespace, name) DO UPDATE SET revision = excluded.revision, value = excluded.value',
    )
    this.#remove = this.#db.prepare('DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?')
    this.#mark = this.#db.prepare(
      'INSERT INTO revisions (resource, revision) VALUES (?, ?) ' +
        'ON CONFLICT (resource) DO UPDATE SET revision = excluded.revision',
    )
  }

  #createTables(path: string): void {
    const found = this.#db.prepare('PRAGMA user_version').get()?.user_version
    if (found !== 0 && found !== schemaVersion) {
      throw new Error(
        `${path} was written by another version of this program (format ${found}, expected ${schemaVersion})`,
      )
    }
    this.#db.exec(
      `BEGIN IMMEDIATE;
       CREATE TABLE IF NOT EXISTS objects (
         resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL,
         value TEXT NOT NULL, PRIMARY KEY (resource, namespace, name));
       CREATE TABLE IF NOT EXISTS revisions (resource TEXT PRIMARY KEY, revision INTEGER NOT NULL);
       PRAGMA user_version = ${schemaVersion};
       COMMIT`,
    )
  }

  *objects(): Generator<StoredRow> {
    for (const row of this.#db.prepare('SELECT resource, namespace, name, revision, value FROM objects').iterate()) {
      yield {
        resource: String(row.resource),
        namespace: String(row.namespace),
        name: String(row.name),
        revision: Number(row.revision),
        value: String(row.value),
      }
    }
  }

  /** The last revision at which each resource changed. */
  revisions(): Map<string, number> {
    const rows = this.#db.prepare('SELECT resource, revision FROM revisions').all()
    return new Map(rows.map((row) => [String(row.resource), Number(row.revision)]))
  }

  put(row: StoredRow): void {
    this.#transaction(() => {
      this.#put.run(row.resource, row.namespace, row.name, row.revision, row.value)
      this.#mark.run(row.resource, row.revision)
    })
  }

  remove(row: Omit<StoredRow, 'value'>): void {
    this.#transaction(() => {
      this.#remove.run(row.resource, row.namespace, row.name)
      this.#mark.run(row.resource, row.revision)
    })
  }

  #transaction(change: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      change()
      this.#db.exec('COMMIT')
    } catch (error) {
      this.#db.exec('ROLLBACK')
      throw error
    }
  }

  [Symbol.dispose](): void {
    this.#db.close()
  }
}

/** Secrets are in it, and the keys of the mesh: nobody but its owner may read it. SQLite gives its other files the same mode. */
function keepPrivate(path: string): void {
  closeSync(openSync(path, 'a', 0o600))
  for (const file of [path, `${path}-wal`, `${path}-shm`]) if (existsSync(file)) chmodSync(file, 0o600)
}
