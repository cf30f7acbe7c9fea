import { z } from "zod";
import { parseDuration } from "../../duration.ts";
import { ProjectId, TokenId } from "../../ids.ts";
import { changedFields, named, namedBody } from "../../named.ts";
import { ApprovalRule } from "./approval.ts";
import { ProtectedMetadata } from "./identity.ts";
import { TimeZone } from "./local-time.ts";
import { pageQuery } from "./pagination.ts";
import { ProjectPause } from "./pause.ts";
import { QuietHours } from "./quiet-hours.ts";
import { ReceiptShare } from "./receipt-fields.ts";

/** A display name. */
export const Name = z
  .string()
  .min(1, "may not be empty")
  .max(100, "must be at most 100 characters")
  .refine((name) => !/\p{Cc}/u.test(name), "may not contain control characters")
  .meta({ examples: ["Shop"] });

const dayMs = 86_400_000;
/** Several days, because Herald stores a device's last-seen time only once a day. */
const minStaleDays = 7;
const maxStaleDays = 3_650;

const StaleAfter = z.string().refine((text) => {
  const ms = parseDuration(text) ?? 0;
  return /[dw]$/.test(text) && ms >= minStaleDays * dayMs && ms <= maxStaleDays * dayMs;
}, `must be ${minStaleDays}d to ${maxStaleDays}d, in days or weeks such as \`90d\` or \`26w\``);
const staleAfterMeta = {
  description:
    "Devices that were not seen for so long become inactive, with the reason `stale`; the next registration activates them. Absent: never",
  examples: ["90d"],
};

const receiptsMeta = {
  description:
    "The share of the devices that a notification without `receipts` asks to report that it arrived; `false`: none. On Android, asking may lower delivery, see `receipts` of a notification",
  examples: [false],
};
const quietHoursMeta = {
  description:
    "When devices get no notification, in the time zone of each. A kind may have its own; kinds that are critical, and silent notifications, pass. Absent: never",
};
const approvalMeta = {
  description:
    "Sends to more devices are proposed, and wait until an operator other than their sender approves them. Only an admin of the installation may raise the number or remove it. Absent: none wait",
};
const timeZoneMeta = {
  description: "The time zone of devices that name none: an IANA name",
  examples: ["Europe/Berlin"],
};

/** Names a project for programs and people. */
export const ProjectKey = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,62}$/, "must be 1 to 63 of a-z, 0-9 and -, and begin with a letter")
  .meta({
    description:
      "Names the project in files and scripts, where ids differ between installations. Unique, and fixed once it is set",
    examples: ["shop"],
  });

/** The query of `GET /admin/v1/projects`. */
export const ProjectListQuery = z.strictObject({
  ...pageQuery,
  key: ProjectKey.optional().meta({ description: "Only the project with this key" }),
});

export const Project = named("Project", {
  id: ProjectId,
  key: ProjectKey.optional(),
  name: z.string().meta({ examples: ["Shop"] }),
  open_registration: z.boolean(),
  protected_metadata: z.array(z.string()).default([]).meta({ description: "Paths that clients may not write" }),
  stale_after: z.string().optional().meta(staleAfterMeta),
  receipts: ReceiptShare.default(false).meta(receiptsMeta),
  quiet_hours: QuietHours.optional().meta(quietHoursMeta),
  default_time_zone: z.string().default("UTC").meta(timeZoneMeta),
  approval: ApprovalRule.optional().meta(approvalMeta),
  paused: ProjectPause.optional().meta({ description: "Its sends wait; absent: they do not" }),
  created_at: z.iso.datetime(),
});
export type Project = z.infer<typeof Project>;

/** Body of `POST /admin/v1/projects`. */
export const CreateProject = namedBody("CreateProject", {
  project: z.strictObject({
    name: Name,
    key: ProjectKey.optional(),
    open_registration: z.boolean().optional(),
    protected_metadata: ProtectedMetadata.optional(),
    first_token: z.boolean().optional().meta({ description: "`false`: without a first token" }),
  }),
});

/** Body of `PUT /admin/v1/projects/{id}/key`. */
export const SetProjectKey = namedBody("SetProjectKey", { key: ProjectKey });

/** Body of `PATCH /admin/v1/projects/{id}`. */
export const ChangeProject = namedBody("ChangeProject", {
  project: changedFields(
    {
      name: Name.optional(),
      open_registration: z.boolean().optional(),
      protected_metadata: ProtectedMetadata.optional(),
      stale_after: StaleAfter.nullable()
        .optional()
        .meta({ ...staleAfterMeta, description: staleAfterMeta.description.replace("Absent: never", "`null`: never") }),
      receipts: ReceiptShare.optional().meta(receiptsMeta),
      quiet_hours: QuietHours.nullable()
        .optional()
        .meta({ description: quietHoursMeta.description.replace("Absent: never", "`null`: never") }),
      default_time_zone: TimeZone.optional().meta(timeZoneMeta),
      approval: ApprovalRule.nullable()
        .optional()
        .meta({ description: approvalMeta.description.replace("Absent: none wait", "`null`: none wait") }),
    },
    { examples: [{ open_registration: false }] },
  ),
});

export const Scope = z.enum(["send", "read", "devices", "export", "templates"]).meta({ id: "Scope" });
export type Scope = z.infer<typeof Scope>;
/**
 * The scopes of a token that names none. `export` must be named, because it gives access to all data at once, and `templates`, because it
 * changes what other callers send.
 */
export const defaultScopes: readonly Scope[] = ["send", "read", "devices"];

/** A project token in lists. The secret is shown only once, in the response that creates it. */
export const ProjectToken = named("ProjectToken", {
  id: TokenId,
  name: z.string().meta({ examples: ["Backend"] }),
  scopes: z.array(Scope),
  expires_at: z.iso.datetime().optional(),
  fingerprint: z
    .string()
    .optional()
    .meta({ description: "The first 16 hex digits of the token's SHA-256", examples: ["e3b0c44298fc1c14"] }),
  created_at: z.iso.datetime(),
});
export type ProjectToken = z.infer<typeof ProjectToken>;

/** Body of `POST /admin/v1/projects/{id}/tokens`. */
export const CreateToken = namedBody("CreateToken", {
  token: z.strictObject({
    name: Name,
    scopes: z
      .array(Scope)
      .min(1, "at least one scope is required")
      .max(Scope.options.length, `must be at most ${Scope.options.length} scopes, each once`)
      .optional(),
    expires_at: z.iso.datetime({ offset: true, error: "must be an RFC 3339 time with offset" }).optional(),
  }),
});
