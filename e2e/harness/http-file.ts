import { eventually, type HttpAnswer, request } from "@herald/testing";

type Entry = {
  readonly title: string;
  readonly status: number;
  readonly name?: string | undefined;
  readonly route: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** The requests of an `.http` file; each title ends in the status to expect, as in `### Register a device (201)`. */
export function parseHttpFile(text: string): Entry[] {
  const [, ...sections] = text.split(/^### /m);
  return sections.map((section) => {
    const [head = "", ...rest] = section.split(/\n\n/);
    const [titled = "", ...lines] = head.split("\n");
    const [, title = "", status = ""] = /^(.*) \((\d{3})\)$/.exec(titled) ?? [];
    if (status === "") throw new Error(`the title "${titled}" does not say which status to expect`);
    const [route = "", ...headers] = lines.filter((line) => line !== "" && !line.startsWith("#"));
    return {
      title,
      status: Number(status),
      name: lines.map((line) => /^# @name (\w+)$/.exec(line)?.[1]).find(Boolean),
      route,
      headers: Object.fromEntries(headers.map(splitHeader)),
      body: rest.join("\n\n").trim(),
    };
  });
}

/**
 * Sends the requests in order, like a user of an editor. Throws if a status differs from the title. If a request needs a value that
 * an earlier answer does not contain yet, the earlier request is sent again.
 */
export async function runHttpFile(text: string, variables: Readonly<Record<string, string>>): Promise<string[]> {
  const answers = new Map<string, HttpAnswer>();
  const entries = parseHttpFile(text);
  const filled = (entry: Entry): Entry => {
    const fill = (template: string): string =>
      template.replace(/\{\{(.+?)\}\}/g, (_, expression: string) => resolveReference(expression, variables, answers));
    const headers = Object.fromEntries(Object.entries(entry.headers).map(([name, value]) => [name, fill(value)]));
    return { ...entry, route: fill(entry.route), headers, body: fill(entry.body) };
  };
  const make = async (entry: Entry): Promise<void> => {
    const { name, title, status, route, headers, body } = filled(entry);
    const answer = await request("", route, { headers, ...(body === "" ? {} : { body }) });
    if (name !== undefined) answers.set(name, answer);
    if (answer.status !== status)
      throw new Error(`"${title}" was answered ${answer.status} instead of ${status}: ${answer.text}`);
  };
  for (const entry of entries) {
    await eventually(async () => {
      try {
        filled(entry);
      } catch (error) {
        const earlier = entries.find(({ name }) => error instanceof NotThereYet && name === error.request);
        if (earlier) await make(earlier);
        throw error;
      }
    });
    await make(entry);
  }
  return entries.map(({ title }) => title);
}

class NotThereYet extends Error {
  readonly request: string;
  constructor(request: string, path: string) {
    super(`the answer of "${request}" has no ${path}`);
    this.request = request;
  }
}

/** A variable, `name.response.body.$.path` or `$datetime iso8601 <days> d`: the references of VS Code's REST Client that the file uses. */
function resolveReference(
  expression: string,
  variables: Readonly<Record<string, string>>,
  answers: ReadonlyMap<string, HttpAnswer>,
): string {
  const [, days] = /^\$datetime iso8601 (\d+) d$/.exec(expression) ?? [];
  if (days !== undefined) return new Date(Date.now() + Number(days) * 86_400_000).toISOString();
  const [, name = "", path = ""] = /^(\w+)\.response\.body\.\$\.(.+)$/.exec(expression) ?? [];
  if (name === "") {
    const value = variables[expression];
    if (value === undefined) throw new Error(`the variable ${expression} has no value`);
    return value;
  }
  let value: unknown = answers.get(name)?.body;
  for (const key of path.split(/[.[\]]+/).filter(Boolean))
    value = (value as Record<string, unknown> | undefined)?.[key];
  if (typeof value !== "string") throw new NotThereYet(name, path);
  return value;
}

function splitHeader(line: string): [string, string] {
  const [name = "", value = ""] = line.split(/: (.*)/, 2);
  return [name.toLowerCase(), value];
}
