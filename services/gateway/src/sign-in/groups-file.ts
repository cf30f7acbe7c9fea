import { unwatchFile, watchFile } from "node:fs";
import { readFile } from "node:fs/promises";
import { type OperatorRole, roleIncludes } from "@herald/contracts";
import { type Logger, meter } from "@herald/kit";
import { type Groups, parseGroups, type Rights } from "./parse-groups.ts";

/** Kubernetes replaces a mounted file by a link, which only polling notices. */
const pollMs = 1_000;

const higher = <Role extends OperatorRole>(one: Role, other: Role): Role => (roleIncludes(one, other) ? one : other);

/** The rights of both: in each project the higher role, and approval if one of them has it. */
const union = (one: Rights, other: Rights): Rights => {
  const projects = new Map(one.projects.map((grant) => [grant.id, grant]));
  for (const { id, role, approve } of other.projects) {
    const own = projects.get(id);
    const may = approve ?? own?.approve;
    projects.set(id, { id, role: higher(role, own?.role ?? role), ...(may && { approve: may }) });
  }
  return { role: higher(one.role, other.role), projects: [...projects.values()] };
};

/** The groups of the identity provider and their roles, from a file; without a path there are none. */
export const createGroupsFile = (path: string | undefined, log: Logger) => {
  let groups: Groups = {};
  let broken = 0;
  const gauge = meter().createObservableGauge("herald.gateway.groups_file_broken", {
    description: "1 while the groups file cannot be read and its last version applies",
  });
  const observe: Parameters<typeof gauge.addCallback>[0] = (result) => result.observe(broken);
  const read = async (file: string) => {
    groups = parseGroups(await readFile(file, "utf8"));
  };
  const onChange = () => {
    read(path ?? "").then(
      () => {
        broken = 0;
        log.info({ groups: Object.keys(groups).length }, "read the groups file again");
      },
      (err: unknown) => {
        broken = 1;
        log.error({ err }, "the groups file is broken; its last version applies");
      },
    );
  };
  /** Adds the rights of groups to an operator's own. */
  const rightsOf = (own: Rights, names: readonly string[] = []): Rights =>
    names.reduce((rights, name) => (Object.hasOwn(groups, name) ? union(rights, groups[name] as Rights) : rights), own);
  return {
    /** Whether a file decides who may sign in. */
    exists: path !== undefined,
    /** Throws if the file is missing or broken. */
    start: async () => {
      if (path === undefined) return;
      await read(path).catch((error: Error) => {
        throw new Error(`HERALD_GATEWAY_OIDC_GROUPS_FILE: ${path}: ${error.message}`);
      });
      gauge.addCallback(observe);
      watchFile(path, { interval: pollMs, persistent: false }, onChange);
    },
    stop: () => {
      gauge.removeCallback(observe);
      if (path !== undefined) unwatchFile(path, onChange);
    },
    /** Those of the names that the file has. */
    known: (names: readonly string[]): string[] => [...new Set(names)].filter((name) => Object.hasOwn(groups, name)),
    rightsOf,
    /** The same, with the groups that the role comes from; none if it is the operator's own. */
    effectiveOf: (own: Rights, names: readonly string[] = []): Rights & { readonly groups: readonly string[] } => {
      const rights = rightsOf(own, names);
      const { role } = rights;
      const from = role === own.role ? [] : names.filter((name) => Object.hasOwn(groups, name));
      return { ...rights, groups: from.filter((name) => groups[name]?.role === role) };
    },
  };
};
