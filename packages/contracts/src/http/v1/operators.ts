import { z } from "zod";
import { OperatorId } from "../../ids.ts";
import { changedFields, named, namedBody } from "../../named.ts";
import { Name, type Scope } from "./admin.ts";

/** `viewer` reads, `operator` also sends, replays and changes devices and topics, `admin` may do everything. */
export const OperatorRole = z.enum(["viewer", "operator", "admin"]).meta({ id: "OperatorRole" });
export type OperatorRole = z.infer<typeof OperatorRole>;

const ranks: Readonly<Record<OperatorRole, number>> = { viewer: 0, operator: 1, admin: 2 };

/** Whether a role includes another. The order is viewer, operator, admin. */
export const roleIncludes = (role: OperatorRole, needed: OperatorRole): boolean => ranks[role] >= ranks[needed];

/** The role that an operator needs if a project token needs this scope. */
export const roleOfScope: Readonly<Record<Scope, OperatorRole>> = {
  read: "viewer",
  send: "operator",
  devices: "operator",
  templates: "operator",
  export: "admin",
};

/** An operator in lists. Its token is shown only once, in the response that creates it. */
export const Operator = named("Operator", {
  id: OperatorId,
  name: z.string().meta({ examples: ["Maria Lopez"] }),
  role: OperatorRole,
  created_at: z.iso.datetime(),
  rotated_at: z.iso.datetime().optional().meta({ description: "When its token was last replaced; absent: never" }),
});
export type Operator = z.infer<typeof Operator>;

/** Body of `POST /admin/v1/operators`. */
export const CreateOperator = namedBody("CreateOperator", {
  operator: z.strictObject({ name: Name, role: OperatorRole }),
});

/** Body of `PATCH /admin/v1/operators/{id}`. */
export const ChangeOperator = namedBody("ChangeOperator", {
  operator: changedFields({ name: Name.optional(), role: OperatorRole.optional() }, { examples: [{ role: "viewer" }] }),
});
