/**
 * How the embedded server is set up. fsync, full_page_writes and synchronous_commit stay at PostgreSQL's
 * own `on`; nothing here may weaken durability. Nothing that a statement carries reaches the log.
 */
import { createHash } from 'node:crypto'

const defaults: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  // No socket files: no world-writable directory, no limit on the length of a path.
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '128MB',
  max_wal_size: '1GB',
  password_encryption: 'scram-sha-256',
  timezone: 'UTC',
  log_timezone: 'UTC',
  lc_messages: 'C',
  jit: 'off',
  log_destination: 'stderr',
  logging_collector: 'off',
  log_line_prefix: '%m [%p] ',
  log_min_messages: 'warning',
  log_checkpoints: 'off',
  // Payloads come into a log by three doors: details of errors, parameters, statement texts.
  log_error_verbosity: 'terse',
  log_parameter_max_length: '0',
  log_parameter_max_length_on_error: '0',
  log_statement: 'none',
  log_min_error_statement: 'panic',
  log_min_duration_statement: '-1',
}

/** A name for the cluster's processes that no other cluster on the machine has; at most 63 bytes. */
export function clusterName(cluster: string): string {
  return `hookledger-${createHash('sha256').update(cluster).digest('hex').slice(0, 12)}`
}

/** The command line of the server. Settings given by the caller win over the defaults. */
export function serverArguments(
  cluster: string,
  port: number,
  settings: Readonly<Record<string, string>>,
): string[] {
  const all = { ...defaults, ...settings, cluster_name: clusterName(cluster), port: String(port) }
  return [
    '-D',
    cluster,
    ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
}
