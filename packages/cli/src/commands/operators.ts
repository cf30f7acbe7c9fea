import type { AuditRow, Operator } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import type { Command } from "commander";
import type { Entries, ListChoice } from "../context.ts";
import { type Add, addDelete, listOptions, option, parsePairs, repeatable } from "../define.ts";
import { UsageError } from "../failures.ts";
import { columnsFor, titled } from "../terminal/table.ts";

/** After a role in a grant: may approve sends of others. */
const approving = "+approve";

type Role = (typeof knownValues.role)[number];

/** With what the operator's groups add. */
const grantsOf = ({ projects, effective }: Operator): string =>
  (effective?.projects ?? projects)
    .map(({ id, role, approve }) => `${id}=${role}${approve ? approving : ""}`)
    .join(", ");

/** What counts, and where it comes from if it is not the operator's own. */
const roleOf = ({ role, effective }: Operator): string =>
  effective === undefined || effective.groups.length === 0
    ? role
    : `${effective.role} (by group ${effective.groups.join(", ")}; own: ${role})`;

const columns = columnsFor<Operator>(
  "id",
  "name",
  { title: "ROLE", value: roleOf },
  { title: "PROJECTS", value: grantsOf },
  "created_at",
);

const lost = "was in an answer that got lost: replace it with `herald operator token <id>`";
const shown = (operator: Operator, token?: string): Entries => [
  ...titled(operator, "id", "name"),
  ["role", roleOf(operator)],
  ["projects", grantsOf(operator) || undefined],
  ["token", token],
];

type Grants = { readonly grant?: readonly string[] };

const roleHelp = "member has only its grants, viewer reads, operator also sends and replays, admin may do everything";
const grantOption = (meaning: string) => repeatable("--grant <project=role>", meaning);

/** The grants of `--grant prj_…=operator`, or `prj_…=operator+approve`; `none`: no grants; undefined: the option is absent. */
export const parseGrants = ({ grant }: Grants) => {
  if (grant === undefined || grant.join() === "none") return grant && [];
  return Object.entries(parsePairs(grant, "--grant")).map(([id, role]) => {
    const approve = role.endsWith(approving);
    const name = approve ? role.slice(0, -approving.length) : role;
    const known = knownValues.projectRole.find((one) => one === name);
    if (known) return { id, role: known, ...(approve && { approve }) };
    throw new UsageError(
      `--grant ${id}=${role}: the role must be one of ${knownValues.projectRole.join(", ")}; ${approving} after it lets the operator approve sends.`,
    );
  });
};

export const addOperators = (group: Command, add: Add) => {
  add<ListChoice>(group, {
    usage: "list",
    does: "List operators, without their tokens",
    options: listOptions,
    run: ({ admin, rows }, _, choice) => rows(admin().operators.list(), columns, choice),
  });
  add<{ name: string; role: Role } & Grants>(group, {
    usage: "create",
    does: "Create an operator and show the token, only this once",
    options: [
      option("--name <name>", "name of the person").makeOptionMandatory(),
      option("--role <role>", roleHelp).choices(knownValues.role).makeOptionMandatory(),
      grantOption("role in one project, and +approve to approve sends; may be repeated"),
    ],
    examples: [
      ["operator create --name 'Maria Lopez' --role operator", "for a colleague who sends"],
      ["operator create --name 'Shop team' --role member --grant prj_…=admin", "for people of one project"],
      ["operator create --name Ann --role member --grant prj_…=viewer+approve", "for one who reads and approves"],
    ],
    run: async ({ admin, record }, _, { name, role, grant }) => {
      const projects = parseGrants({ grant });
      const { operator, token = lost } = await admin().operators.create({ name, role, projects });
      await record({ ...operator, token }, () => shown(operator, token));
    },
  });
  add<{ name?: string; role?: Role } & Grants>(group, {
    usage: "update <id>",
    does: "Change an operator's name, role or grants, within a second and also for sessions in progress",
    options: [
      option("--name <name>", "new name"),
      option("--role <role>", "new role").choices(knownValues.role),
      grantOption("replaces all grants; may be repeated; `none` removes them"),
    ],
    run: ({ admin, record }, [id = ""], { name, role, grant }) =>
      record(admin().operators.update(id, { name, role, projects: parseGrants({ grant }) }), (operator) =>
        shown(operator),
      ),
  });
  add(
    group,
    "sign-out <id>",
    "End an operator's sessions within a second; the token stays",
    ({ admin, result }, [id = ""]) =>
      result(
        admin()
          .operators.signOut(id)
          .then(() => ({ id, signed_out: true })),
        () => `Signed ${id} out everywhere.`,
      ),
  );
  add(group, "token <id>", "Replace an operator's token and end its sessions", async ({ admin, record }, [id = ""]) => {
    const { operator, token = lost } = await admin().operators.rotateToken(id);
    await record({ ...operator, token }, () => shown(operator, token));
  });
  addDelete(group, add, {
    usage: "delete <id>",
    does: "Delete an operator; the token and its sessions end within a second",
    question: (id) => `Delete the operator ${id}?`,
    run: (context, id) => context.admin().operators.delete(id),
  });
};

const auditColumns = columnsFor<AuditRow>(
  { title: "ROW", value: ({ sequence }) => sequence, right: false },
  "at",
  { title: "OPERATOR", value: ({ operator }) => operator.name },
  { title: "ACTION", value: ({ action }) => action, whole: true },
  "target",
  { title: "FROM", value: ({ address }) => address },
);

type AuditFilters = { operator?: string; action?: string; after?: string; before?: string; ofProject?: string };

export const addAudit = (group: Command, add: Add) => {
  add<ListChoice & AuditFilters>(group, {
    usage: "list",
    does: "List audit rows, newest first",
    options: [
      option("--operator <id>", "only this operator: opr_…, or root"),
      option("--action <operation>", "only this operation, such as deleteProject"),
      option("--of-project <id>", "only this project"),
      option("--after <time>", "only from this time on, such as 2030-01-31T09:00:00Z"),
      option("--before <time>", "only before this time"),
      ...listOptions,
    ],
    examples: [["audit list --action deleteProject", "who deleted projects"]],
    run: ({ admin, rows }, _, { operator, action, ofProject, after, before, ...choice }) => {
      const filters = { operator, action, project_id: ofProject, created_after: after, created_before: before };
      return rows(admin().audit.list({ ...filters }), auditColumns, choice);
    },
  });
  add(group, "verify", "Check that no audit row was changed, forged or removed", async ({ admin, result }) => {
    const check = await admin().audit.check();
    const { valid, checked, problem, head, removed } = check;
    const before = removed ? ` Rows up to ${removed.sequence}, of ${removed.at}, were removed by age.` : "";
    await result(check, () =>
      valid
        ? `All ${checked} rows are unchanged. The last one has the hash ${head?.hash ?? "-"}.${before}`
        : `Row ${problem?.sequence}: ${problem?.detail}. The ${checked} rows before it are unchanged.`,
    );
    return valid ? undefined : 1;
  });
};
