import { type ProjectGrant as Grant, maxGrants, OperatorRole, ProjectGrant } from "@herald/contracts";
import { isAlias, LineCounter, type Node, parseDocument, visit } from "yaml";
import { z } from "zod";

const maxFileBytes = 1_048_576;
const maxNameLength = 256;

const Group = z.strictObject({
  role: OperatorRole.default("member"),
  projects: z.array(ProjectGrant).max(maxGrants, `must be at most ${maxGrants} projects`).default([]),
});
const Groups = z.record(z.string().min(1).max(maxNameLength), Group);

/** Roles by the name of a group. */
export type Groups = z.infer<typeof Groups>;

/** What an operator may do. */
export type Rights = { readonly role: OperatorRole; readonly projects: readonly Grant[] };

/** Parses the groups file, a group a line. Throws an error that names line and column of the first problem. */
export const parseGroups = (text: string): Groups => {
  if (Buffer.byteLength(text) > maxFileBytes) throw new Error("the groups file is larger than 1 MiB");
  const lines = new LineCounter();
  const problemAt = (offset: number, problem: string): Error => {
    const { line, col } = lines.linePos(offset);
    return new Error(`line ${line}, column ${col}: ${problem}`);
  };
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [broken] = document.errors;
  if (broken) throw problemAt(broken.pos[0], broken.message);
  visit(document, {
    Node: (_, node) => {
      if (isAlias(node)) throw problemAt(node.range?.[0] ?? 0, "aliases are not accepted");
    },
  });
  const parsed = Groups.safeParse(document.toJS() ?? {});
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = issue?.path.map(String) ?? [];
  // The deepest part of the path that the file has.
  const node = path.map((_, at) => document.getIn(path.slice(0, path.length - at), true)).find(Boolean) as
    | Node
    | undefined;
  throw problemAt(node?.range?.[0] ?? 0, `${path.join(".")}: ${issue?.message}`);
};
