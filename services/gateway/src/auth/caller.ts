import {
  type Author,
  type DeviceId,
  type OperatorReference,
  type OperatorRole,
  type ProjectGrant,
  type ProjectId,
  type ProjectRole,
  roleIncludes,
  roleOfScope,
  type Scope,
  type TokenId,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";

/** A named operator, or the holder of HERALD_ADMIN_TOKEN. */
export type ActingOperator = {
  readonly id: OperatorReference;
  readonly name: string;
  readonly role: OperatorRole;
  readonly projects: readonly ProjectGrant[];
  /** SHA-256 of the token: sessions and codes end with it. */
  readonly tokenHash: string;
  /** Sessions and codes that began before it have ended. */
  readonly signedOutAt?: string | undefined;
};

/** The session of an operator's cookie, or of its bearer. */
export type OperatorSession = {
  readonly hash: string;
  readonly csrfToken: string;
  readonly expiresAt: Date;
  readonly bearer?: true | undefined;
  readonly logoutUrl?: string | undefined;
};

/** The authenticated caller. A `client` sent no credential: its body must prove its rights. */
export type Caller =
  | {
      readonly kind: "project";
      readonly projectId: ProjectId;
      /** The rate limit of a token counts by this id. */
      readonly tokenId: TokenId | OperatorReference;
      readonly scopes: readonly Scope[];
      /** The operator who created the token; undefined: not known, or the caller is an operator. */
      readonly owner?: OperatorReference | undefined;
      /** The operator who acts for the project; undefined: a project token. */
      readonly operator?: ActingOperator;
    }
  | { readonly kind: "device"; readonly projectId: ProjectId; readonly deviceId: DeviceId }
  /** Proven by a token of the user, which the app's backend signed. */
  | { readonly kind: "user"; readonly projectId: ProjectId; readonly userId: string }
  | { readonly kind: "client" }
  | { readonly kind: "operator"; readonly operator: ActingOperator; readonly session?: OperatorSession };

export type CallerKind = Caller["kind"];
export type CallerOf<Kind extends CallerKind> = Extract<Caller, { kind: Kind }>;

/** The callers that may use a route. A project token also needs all the scopes, an operator the role. */
export type Access<Kind extends CallerKind = CallerKind> = {
  readonly by: readonly Kind[];
  readonly scopes?: readonly Scope[];
  /** The role that an operator needs under `/admin/v1`. Elsewhere it follows from the scopes. */
  readonly role?: OperatorRole;
  /**
   * The role that suffices in the project that a request under `/admin/v1` names, in its path or in `project_id` of its query, or
   * `approve`, which a grant of any role may have. Absent: a grant does not help.
   */
  readonly grant?: ProjectRole | "approve";
  /** The body contains a signature that proves the request. */
  readonly signed?: true;
  /** A device credential is used if sent; any other or an invalid credential is ignored. */
  readonly orDevice?: true;
  /** Signs in, so an earlier session is ignored. */
  readonly signsIn?: true;
  /** Each request counts as a sign-in of its operator, before it has an audit row. */
  readonly countsAsSignIn?: true;
};

export const project = (...scopes: Scope[]): Access<"project"> => ({ by: ["project"], scopes });
export const projectOrDevice = (scope: Scope): Access<"project" | "device"> => ({
  by: ["project", "device"],
  scopes: [scope],
});
export const projectOrUser = (scope: Scope): Access<"project" | "user"> => ({
  by: ["project", "user"],
  scopes: [scope],
});
export const anyClient = (scope: Scope): Access<"project" | "device" | "client"> => ({
  by: ["project", "device", "client"],
  scopes: [scope],
});
/** The body alone identifies the client. */
export const noCredential: Access<"client"> = { by: ["client"] };
/** The signature in the body is the credential. Valid requests have no rate limit, however many clients share an address. */
export const signedBody: Access<"client"> = { by: ["client"], signed: true };
/** The body identifies the client; a device credential may identify its device. */
export const clientOrDevice: Access<"client" | "device"> = { by: ["client"], orDevice: true };

const byRole = (role: OperatorRole, grant?: Access["grant"]): Access<"operator"> => ({
  by: ["operator"],
  role,
  ...(grant && { grant }),
});
/** Every operator, for what is their own. */
export const anyOperator = byRole("member");
/** These roles for the installation: for what is not one project's. */
export const viewer = byRole("viewer");
export const operator = byRole("operator");
export const adminOnly = byRole("admin");
/** These roles for the installation or for the project of the path. */
export const projectViewer = byRole("viewer", "viewer");
export const projectOperator = byRole("operator", "operator");
export const projectAdmin = byRole("admin", "admin");
/** Admins of the installation, and those who may approve sends of the project of the path. */
export const projectApprover = byRole("admin", "approve");
/** Audit rows: they say who did what, so a project's are for its admins. */
export const auditReader = byRole("viewer", "admin");
/** An operator's token, or a sign-in code in the body. */
export const signInAccess: Access<"operator" | "client"> = {
  by: ["operator", "client"],
  role: "member",
  signsIn: true,
  countsAsSignIn: true,
};
/** Creates a sign-in code for oneself. */
export const createCode: Access<"operator"> = { ...anyOperator, countsAsSignIn: true };

const highest = (roles: readonly OperatorRole[]): OperatorRole =>
  roles.reduce((role, other) => (roleIncludes(role, other) ? role : other), "viewer");

/** The role that an operator needs for a route; undefined if operators cannot use it. */
export const roleOf = ({ by, role, scopes }: Access): OperatorRole | undefined => {
  if (role !== undefined) return role;
  return by.includes("project") ? highest((scopes ?? []).map((scope) => roleOfScope[scope])) : undefined;
};

/** The higher of an operator's own role and the role that was granted in a project. */
export const roleIn = (
  { role, projects }: Pick<ActingOperator, "role" | "projects">,
  projectId: unknown,
): OperatorRole => {
  const granted = projects.find(({ id }) => id === projectId)?.role;
  return granted !== undefined && roleIncludes(granted, role) ? granted : role;
};

/** The scopes that a role has in a project. */
export const scopesOf = (role: OperatorRole): Scope[] =>
  (Object.keys(roleOfScope) as Scope[]).filter((scope) => roleIncludes(role, roleOfScope[scope]));

/** Whose share of the open streams, exports and uploads a request takes: an operator has one for all projects. */
export type ShareOwner = ProjectId | OperatorReference;
export const isProject = (owner: ShareOwner): owner is ProjectId => owner.startsWith("prj_");
export const shareOwner = ({ operator, projectId }: CallerOf<"project">): ShareOwner => operator?.id ?? projectId;

/** Who acts, for what is stored and shown of it. */
export const authorOf = (caller: CallerOf<"project" | "operator">): Author => ({
  id: caller.kind === "project" ? caller.tokenId : caller.operator.id,
  ...(caller.operator && { name: caller.operator.name }),
});

export const forbidden = (message: string, headers?: Readonly<Record<string, string>>): HeraldError =>
  new HeraldError("forbidden", `authorization: ${message}`, { headers });

/** Throws forbidden when a device credential or a user token is used for another device or user than its own, existing or not. */
export const refuseForeign = (caller: Caller, { deviceId, userId }: Readonly<Record<string, unknown>>): void => {
  if (caller.kind === "device" && deviceId !== undefined && deviceId !== caller.deviceId)
    throw forbidden("a device credential can only act for its own device");
  if (caller.kind === "user" && userId !== undefined && userId !== caller.userId)
    throw forbidden("a user token can only act for its own user");
};

/** The error for a credential that is unknown or has expired (RFC 6750). */
export const invalidCredential = (message: string): HeraldError =>
  new HeraldError("unauthenticated", message, {
    headers: { "www-authenticate": 'Bearer realm="herald", error="invalid_token"' },
  });
