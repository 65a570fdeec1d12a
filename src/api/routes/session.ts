/** Who I am here, what I may do, and how to sign in and out. */
import { z } from 'zod'
import { HookledgerError } from '../../core/errors.ts'
import { permissionsOf, roles, type Permission, type Role } from '../access.ts'
import { openApi } from '../openapi.ts'
import { defineRoute, type ApiRoute } from '../route.ts'
import { idText, moment } from '../schemas.ts'

const role = z.enum(roles as [Role, ...Role[]])

const session = z.strictObject({
  /** Null: nobody is signed in. */
  actor: z.string().nullable(),
  roles: z.array(role),
  permissions: z.array(z.string()),
  /** Sent back as `x-hookledger-csrf` with every act. */
  csrf: z.string().nullable(),
  door: z.enum(['oidc', 'app', 'loopback']),
  /** Where signing in begins, below the prefix. */
  sign_in_path: z.string().nullable(),
  environment: z.enum(['live', 'test']),
  schema: z.string(),
  /** The bulk acts that a second person must approve. */
  approval: z.strictObject({ bulk_from: z.number().int().nullable() }),
})

const sessionView = z.strictObject({
  session_id: z.string(),
  actor: z.string(),
  roles: z.array(role),
  began_at: moment,
  last_seen_at: moment,
  expires_at: moment,
})

function permissionsOfAll(given: readonly Role[]): Permission[] {
  return [...new Set(given.flatMap((each) => permissionsOf[each]))].sort()
}

/** The routes; the document describes all of `others` and these. */
export function sessionRoutes(
  others: () => readonly ApiRoute[],
  prefix: string,
): readonly ApiRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/session',
      permission: 'public',
      summary: 'Who asks, what they may do, and how to sign in.',
      shape: { answer: session },
      handle: async ({ parts, visitor, door }) => {
        const { identity, csrf } = visitor
        const { environment, schemaName, console: settings } = parts.config
        return {
          actor: identity?.actor ?? null,
          roles: [...(identity?.roles ?? [])],
          permissions: permissionsOfAll(identity?.roles ?? []),
          csrf,
          door: door.kind,
          sign_in_path: door.signInPath,
          environment,
          schema: schemaName,
          approval: { bulk_from: settings.approval.bulkFrom },
        }
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/session/end',
      permission: 'read',
      summary: 'Signs out, here and in the database.',
      shape: { answer: z.strictObject({ ended: z.boolean() }) },
      handle: async ({ door, request }) => {
        const headers = await door.signOut(request)
        headers.set('content-type', 'application/json; charset=utf-8')
        return new Response('{"ended":true}', { headers })
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/sessions',
      permission: 'administer',
      summary: 'Who is signed in.',
      shape: { answer: z.strictObject({ items: z.array(sessionView) }) },
      handle: async ({ door }) => ({
        items: ((await door.sessions?.list()) ?? []).map((each) => ({
          ...each,
          roles: [...each.roles],
        })),
      }),
    }),
    defineRoute({
      method: 'POST',
      path: '/sessions/{session_id}/end',
      permission: 'administer',
      summary: "Ends somebody's session.",
      shape: {
        params: z.strictObject({ session_id: idText }),
        body: z.strictObject({}),
        answer: z.strictObject({ ended: z.boolean() }),
      },
      handle: async ({ door, identity }, { params }) => {
        const ended = (await door.sessions?.end(params.session_id, identity.actor)) ?? false
        if (!ended) throw new HookledgerError('HKL_NOT_FOUND', 'no such session is open')
        return { ended }
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/openapi.json',
      permission: 'public',
      summary: 'This document.',
      shape: { answer: z.looseObject({ openapi: z.string() }) },
      handle: async () => openApi(others(), prefix) as { openapi: string },
    }),
  ]
}
