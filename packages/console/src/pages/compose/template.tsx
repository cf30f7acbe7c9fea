import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { useProject } from "../../api/clients.ts";
import { firstRows } from "../../api/read.ts";
import { FormFields } from "../../parts/fields.tsx";
import { type Draft, withTexts } from "./draft.ts";
import { useTemplateContent } from "./use-dry-run.ts";

type Props = {
  readonly draft: Draft;
  readonly change: (changes: Partial<Draft>) => void;
  readonly problemOf: (name: string) => string | undefined;
};

/** As many as a project can have. */
const maxTemplates = 200;

/** A declared type in words, and a value of it. */
const types: Readonly<Record<string, readonly [words: string, example: string]>> = {
  string: ["A text", "Any text"],
  number: ["A number", "12.5"],
  boolean: ["true or false", "true"],
  datetime: ["A time with its offset", "2030-01-31T09:00:00Z"],
};

const aboutOf = ({ type, fallback }: Draft["variables"][number], isFile: boolean): string => {
  const [words = type] = types[type] ?? [];
  if (fallback !== "") return `${words}; empty: ${fallback}.`;
  return isFile ? `${words}; empty: from the file.` : `${words}; required.`;
};

/** The template of a notification, and the values of its variables. Hidden while the project has no published template. */
export const TemplateFields = ({ draft, change, problemOf }: Props) => {
  const { id, herald } = useProject();
  const { data: names = [] } = useQuery({
    queryKey: [id, "templates", "published"],
    queryFn: async ({ signal }) => {
      const { data } = await firstRows(herald.templates.list({ signal, perPage: 100 }), maxTemplates);
      return data.flatMap(({ name, published }) => (published === undefined ? [] : [name]));
    },
  });
  const content = useTemplateContent(draft.template);
  // A newer version of the template may declare others than the draft was written with.
  useEffect(() => {
    if (content === undefined) return;
    const variables = Object.entries(content.variables ?? {}).map(([name, { type, fallback }]) => ({
      name,
      type,
      fallback: fallback === undefined ? "" : String(fallback),
      text: draft.variables.find((one) => one.name === name)?.text ?? "",
    }));
    if (JSON.stringify(variables) !== JSON.stringify(draft.variables)) change({ variables });
  }, [content, draft.variables, change]);
  if (names.length === 0 && draft.template === "") return null;
  return (
    <>
      <Select
        label="Template"
        placeholder="none"
        value={draft.template === "" ? null : draft.template}
        onChange={(name) => change({ template: name ?? "", ...(name === null && { variables: [] }) })}
        data={names.includes(draft.template) || draft.template === "" ? names : [...names, draft.template]}
        error={problemOf("template")}
        searchable
        clearable
      />
      <FormFields
        fields={Object.fromEntries(
          draft.variables.map((variable) => [
            variable.name,
            {
              label: variable.name,
              hint: aboutOf(variable, draft.from === "file"),
              placeholder: variable.fallback || types[variable.type]?.[1],
              half: true,
            },
          ]),
        )}
        values={Object.fromEntries(draft.variables.map(({ name, text }) => [name, text]))}
        change={(changes) => change({ variables: withTexts(draft.variables, changes) })}
        problemOf={(name) => problemOf(`variables/${name}`)}
      />
    </>
  );
};
