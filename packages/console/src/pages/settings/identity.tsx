import { admin, useProject } from "../../api/clients.ts";
import { Copyable } from "../../parts/code.tsx";
import type { FieldsOf } from "../../parts/field-values.ts";
import { adding, Confirm, FormButton } from "../../parts/form.tsx";
import { Time } from "../../parts/format.tsx";
import { List } from "../../parts/list.tsx";
import { useHasRoleHere } from "../../session-context.tsx";

/** A PEM is sent as text, a JWK as an object. */
type NewKey = { readonly public_key?: string | Readonly<Record<string, unknown>> };

const fields: FieldsOf<NewKey> = {
  public_key: {
    label: "Public key (PEM or JWK)",
    hint: "If you leave it empty, Herald creates a shared secret for HS256.",
    as: "json",
    props: { minRows: 4, maxRows: 12, spellCheck: false },
  },
};

export default function Identity() {
  const { id } = useProject();
  const may = useHasRoleHere("admin");
  return (
    <List
      label="Identity keys"
      queryKey={[id, "identity-keys"]}
      everyMs={false}
      read={({ page }) => admin.identityKeys.list(id, { perPage: 100 }).page(page)}
      empty={{
        title: "No identity keys",
        text: "Your backend signs user tokens with it, so that an app can log in only its own user.",
      }}
      actions={
        may && (
          <FormButton<NewKey>
            label="New key"
            button={adding}
            title="New key"
            verb="Create key"
            fields={fields}
            act={async (key) => {
              const { secret } = await admin.identityKeys.create(id, key);
              return key.public_key === undefined ? { secret } : undefined;
            }}
            secretTitle="The new secret"
          />
        )
      }
      columns={[
        { title: "Id", cell: (row) => <Copyable value={row.id} /> },
        { title: "Algorithm", cell: (row) => row.algorithm },
        { title: "Created", wide: true, cell: (row) => <Time at={row.created_at} /> },
      ]}
      buttons={(row) =>
        may && (
          <Confirm
            title="Delete this key?"
            verb="Delete the key"
            act={() => admin.identityKeys.delete(id, row.id)}
            about="User tokens signed with it are refused from now on."
          />
        )
      }
    />
  );
}
