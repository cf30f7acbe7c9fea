import type { DeviceId, ProjectId, Scope, TokenId } from "@herald/contracts";

/** Who is asking, proven. `client` has sent no credential: what it may do rests on what is in its body. */
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

/** Who may use a route; a project token needs all the scopes too. */
export type Access<Kind extends CallerKind = CallerKind> = {
  readonly by: readonly Kind[];
  readonly scopes?: readonly Scope[];
  /** The body is signed, so a request shows by itself that it is no stranger's. */
  readonly signed?: true;
  /** A device credential proves more where it comes along; any other header, or a stale one, is as none. */
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
/** What is in the body is all that there is. */
export const noCredential: Access<"client"> = { by: ["client"] };
/** What is in the body is the credential: however many share an address, none that is true is held back. */
export const signedBody: Access<"client"> = { by: ["client"], signed: true };
/** The same, and a device credential says which device it is about to be. */
export const clientOrDevice: Access<"client" | "device"> = { by: ["client"], orDevice: true };
export const admin: Access<"admin"> = { by: ["admin"] };
