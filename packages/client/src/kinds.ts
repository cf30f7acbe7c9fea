import type { DeclaredKind, KindDeclaration } from "./api-types.ts";
import { type CallOptions, type Http, path } from "./http.ts";
import { type ListOptions, list } from "./list.ts";

export const createKinds = (http: Http) => {
  const kinds = (projectId: string) => path`/projects/${projectId}/kinds`;
  const one = (projectId: string, kind: string) => kinds(projectId) + path`/${kind}`;
  return {
    /** Declares the kind, or replaces its declaration: a field that is absent has its default again. */
    put: (projectId: string, kind: string, declaration: KindDeclaration, options?: CallOptions) =>
      http.put<DeclaredKind>(one(projectId, kind), options, { kind: declaration }),
    get: (projectId: string, kind: string, options?: CallOptions) =>
      http.get<DeclaredKind>(one(projectId, kind), options),
    /** By name. */
    list: (projectId: string, options?: ListOptions) => list<DeclaredKind>(http, kinds(projectId), options),
    /** The kind goes to every device again. */
    delete: (projectId: string, kind: string, options?: CallOptions) => http.remove(one(projectId, kind), options),
  };
};
