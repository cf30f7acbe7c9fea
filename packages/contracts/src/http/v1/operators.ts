import { z } from "zod";
import { OperatorId, ProjectId } from "../../ids.ts";
import { changedFields, named, namedBody, withProblems } from "../../named.ts";
import { Name, type Scope } from "./admin.ts";

/** `viewer` reads, `operator` also sends, replays and changes devices and topics, `admin` may do everything. */
export const ProjectRole = z.enum(["viewer", "operator", "admin"]).meta({ id: "ProjectRole" });
export type ProjectRole = z.infer<typeof ProjectRole>;

/** A role for the installation. A `member` has only the projects that it was granted. */
export const OperatorRole = z.enum(["member", ...ProjectRole.options]).meta({ id: "OperatorRole" });
export type OperatorRole = z.infer<typeof OperatorRole>;

const ranks: Readonly<Record<OperatorRole, number>> = { member: 0, viewer: 1, operator: 2, admin: 3 };

/** Whether a role includes another. The order is member, viewer, operator, admin. */
export const roleIncludes = (role: OperatorRole, needed: OperatorRole): boolean => ranks[role] >= ranks[needed];

/** The role that an operator needs if a project token needs this scope. */
export const roleOfScope: Readonly<Record<Scope, OperatorRole>> = {
  read: "viewer",
  send: "operator",
  devices: "operator",
  templates: "operator",
  export: "admin",
};

/** A role in one project. There the higher of it and the operator's own role counts. */
export const ProjectGrant = z
  .strictObject({
    id: ProjectId,
    role: ProjectRole,
    approve: z
      .literal(true)
      .optional()
      .meta({ description: "May approve sends of others; admins of the installation may, too" }),
  })
  .meta({ id: "ProjectGrant", examples: [{ id: "prj_06bq4ghm31tz5d2ns8y7k9w0ac", role: "operator" }] });
export type ProjectGrant = z.infer<typeof ProjectGrant>;

/** The operator's record with so many grants has 6 KB, and every gateway holds all records in memory. */
export const maxGrants = 100;

const Grants = z
  .array(ProjectGrant)
  .max(maxGrants, `must be at most ${maxGrants} projects`)
  .superRefine(
    withProblems((grants) =>
      grants.flatMap(({ id }, at) =>
        grants.findIndex((other) => other.id === id) < at
          ? [{ path: [at, "id"], message: "is in the list already; name each project once" }]
          : [],
      ),
    ),
  );

/** An operator in lists. Its token is shown only once, in the response that creates it. */
export const Operator = named("Operator", {
  id: OperatorId,
  name: z.string().meta({ examples: ["Maria Lopez"] }),
  role: OperatorRole,
  projects: z.array(ProjectGrant),
  email: z
    .string()
    .optional()
    .meta({ description: "As the identity provider names it", examples: ["maria@example.com"] }),
  groups: z
    .array(z.string())
    .optional()
    .meta({
      description:
        "Groups of the groups file at the last sign-in; their roles are added. Absent: never signed in by the identity provider",
      examples: [["shop-team"]],
    }),
  effective: z
    .strictObject({
      role: OperatorRole,
      projects: z.array(ProjectGrant),
      groups: z.array(z.string()).meta({
        description: "The groups that `role` comes from; empty: it is the operator's own",
        examples: [["herald-admins"]],
      }),
    })
    .optional()
    .meta({ description: "What the operator may do: `role` and `projects` together with those of its groups" }),
  created_at: z.iso.datetime(),
  rotated_at: z.iso.datetime().optional().meta({ description: "When its token was last replaced; absent: never" }),
  signed_out_at: z.iso
    .datetime()
    .optional()
    .meta({ description: "When all its sessions were last ended; absent: never" }),
});
export type Operator = z.infer<typeof Operator>;

/** Body of `POST /admin/v1/operators`. */
export const CreateOperator = namedBody("CreateOperator", {
  operator: z.strictObject({ name: Name, role: OperatorRole, projects: Grants.optional() }),
});

/** Body of `PATCH /admin/v1/operators/{id}`. */
export const ChangeOperator = namedBody("ChangeOperator", {
  operator: changedFields(
    {
      name: Name.optional(),
      role: OperatorRole.optional(),
      projects: Grants.optional().meta({ description: "Replaces all grants" }),
    },
    { examples: [{ role: "viewer" }] },
  ),
});
