import { Select, SimpleGrid } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useProject } from "../../api/clients.ts";
import { firstRows } from "../../api/read.ts";
import { Field } from "../../parts/field.tsx";
import type { Draft } from "./draft.ts";

type Props = {
  readonly draft: Draft;
  readonly change: (changes: Partial<Draft>) => void;
  readonly problemOf: (name: string) => string | undefined;
};

/** As many as a project can have. */
const maxTemplates = 200;

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
  const choose = async (name: string | null) => {
    if (name === null) return change({ template: "", variables: [] });
    const { published } = await herald.templates.get(name);
    const { content } = await herald.templates.get(name, { version: published });
    const variables = Object.entries(content.variables ?? {}).map(([variable, { type, fallback }]) => ({
      name: variable,
      type,
      fallback: fallback === undefined ? "" : String(fallback),
      text: draft.variables.find((one) => one.name === variable)?.text ?? "",
    }));
    change({ template: name, variables });
  };
  if (names.length === 0 && draft.template === "") return null;
  return (
    <>
      <Select
        label="Template"
        placeholder="none"
        value={draft.template === "" ? null : draft.template}
        onChange={(name) => void choose(name)}
        data={names.includes(draft.template) || draft.template === "" ? names : [...names, draft.template]}
        error={problemOf("template")}
        searchable
        clearable
      />
      {draft.variables.length > 0 && (
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
          {draft.variables.map(({ name, type, fallback, text }) => (
            <Field
              key={name}
              label={name}
              value={text}
              placeholder={fallback === "" ? type : fallback}
              onChange={(typed) =>
                change({ variables: draft.variables.map((one) => (one.name === name ? { ...one, text: typed } : one)) })
              }
              error={problemOf(`variables/${name}`)}
            />
          ))}
        </SimpleGrid>
      )}
    </>
  );
};
