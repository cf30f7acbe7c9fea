import type { NewProjectToken } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import { admin, useProject } from "../../api/clients.ts";
import type { FieldsOf } from "../../parts/field-values.ts";
import { adding, Confirm, FormButton } from "../../parts/form.tsx";
import { Time } from "../../parts/format.tsx";
import { List } from "../../parts/list.tsx";
import { useHasRoleHere } from "../../session-context.tsx";

/** The scopes that a new token has. */
const common = ["send", "read", "devices"];

const fields: FieldsOf<NewProjectToken> = {
  name: { label: "Name", hint: "Where it is used, such as backend or importer.", required: true },
  scopes: { label: "Scopes", as: "boxes", choices: knownValues.scope, required: true },
  expires_at: { label: "Expires", as: "time" },
};

export default function Tokens() {
  const { id } = useProject();
  const may = useHasRoleHere("admin");
  return (
    <List
      label="Project tokens"
      queryKey={[id, "tokens"]}
      everyMs={false}
      read={({ page }) => admin.tokens.list(id, { perPage: 100 }).page(page)}
      empty={{ title: "No tokens", text: "Your backend needs a token to send notifications." }}
      actions={
        may && (
          <FormButton<NewProjectToken>
            label="New token"
            button={adding}
            title="New token"
            verb="Create token"
            fields={fields}
            initial={{ scopes: common }}
            act={async (token) => ({ secret: (await admin.tokens.create(id, token)).token })}
            secretTitle="The new token"
          />
        )
      }
      columns={[
        { title: "Name", cell: (row) => <span className="break">{row.name}</span> },
        { title: "Scopes", cell: (row) => row.scopes.join(", ") },
        { title: "Expires", wide: true, cell: (row) => <Time at={row.expires_at} /> },
        { title: "Created", wide: true, cell: (row) => <Time at={row.created_at} /> },
      ]}
      buttons={(row) =>
        may && (
          <Confirm
            label="Revoke"
            title={`Revoke ${row.name}?`}
            verb="Revoke the token"
            act={() => admin.tokens.revoke(id, row.id)}
            about="It is refused everywhere within a second."
          />
        )
      }
    />
  );
}
