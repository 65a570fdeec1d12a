/**
 * Who may do what. Deny by default: a route names one permission, and a role has what stands here and
 * nothing else. Roles do not contain one another; a person may have several.
 */

import type { Identity, Role } from '../compose/console-options.ts'

export type { Identity, Role } from '../compose/console-options.ts'

/**
 * What a route asks for. `public`: anybody, signed in or not. `read`: everything but payloads. `operate`: acts
 * that are recorded, also those that move money or access. `approve`: another person's bulk act. `reveal`:
 * payloads. `erase`: a subject. `administer`: other people's sessions.
 */
export type Permission =
  'public' | 'read' | 'operate' | 'approve' | 'reveal' | 'erase' | 'administer'

/** Every role, in the order of what it may do. */
export const roles: readonly Role[] = ['viewer', 'operator', 'approver', 'privacy', 'admin']

/** What each role may do. */
export const permissionsOf: Readonly<Record<Role, readonly Permission[]>> = Object.freeze({
  viewer: ['read'],
  operator: ['read', 'operate'],
  approver: ['read', 'approve'],
  privacy: ['read', 'reveal', 'erase'],
  admin: ['read', 'operate', 'approve', 'reveal', 'erase', 'administer'],
})

/** Whether one of their roles has it; somebody unknown has `public` only. */
export function may(identity: Identity | null, permission: Permission): boolean {
  if (permission === 'public') return true
  return identity?.roles.some((role) => permissionsOf[role].includes(permission)) ?? false
}
