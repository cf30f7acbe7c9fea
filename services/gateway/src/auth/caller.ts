import type { DeviceId, ProjectId, Scope, TokenId } from "@herald/contracts";

/** The authenticated caller. A `client` has sent no credential: its body must prove what it may do. */
export type Caller =
  | {
      readonly kind: "project";
      readonly projectId: ProjectId;
      readonly tokenId: TokenId;
      readonly scopes: readonly Scope[];
    }
  | { readonly kind: "device"; readonly projectId: ProjectId; readonly deviceId: DeviceId }
  | { readonly kind: "client" }
  | { readonly kind: "admin" };

export type CallerKind = Caller["kind"];
export type CallerOf<Kind extends CallerKind> = Extract<Caller, { kind: Kind }>;

/** The callers that may use a route. A project token needs all the scopes too. */
export type Access<Kind extends CallerKind = CallerKind> = {
  readonly by: readonly Kind[];
  readonly scopes?: readonly Scope[];
  /** The body contains a signature that proves the request. */
  readonly signed?: true;
  /** A device credential is used if sent; any other or an invalid credential is ignored. */
  readonly orDevice?: true;
};

export const project = (...scopes: Scope[]): Access<"project"> => ({ by: ["project"], scopes });
export const projectOrDevice = (scope: Scope): Access<"project" | "device"> => ({
  by: ["project", "device"],
  scopes: [scope],
});
export const anyClient = (scope: Scope): Access<"project" | "device" | "client"> => ({
  by: ["project", "device", "client"],
  scopes: [scope],
});
/** The body alone identifies the client. */
export const noCredential: Access<"client"> = { by: ["client"] };
/** The signature in the body is the credential. Valid requests are never rate limited, however many clients share an address. */
export const signedBody: Access<"client"> = { by: ["client"], signed: true };
/** The body identifies the client; a device credential may add which device it is. */
export const clientOrDevice: Access<"client" | "device"> = { by: ["client"], orDevice: true };
export const admin: Access<"admin"> = { by: ["admin"] };
