import type { IdentityKey } from "@herald/client";
import { Textarea } from "@mantine/core";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { Time } from "../../parts/format.tsx";
import { objectOf } from "../../parts/json.ts";
import { rowActions } from "../../parts/list.tsx";
import { ManagedList, type NewProps } from "../../parts/managed-list.tsx";
import { Copyable } from "../../parts/page.tsx";
import { RoleNote } from "../../parts/role-note.tsx";
import { useHasRoleHere } from "../../session-context.tsx";

const NewKey = ({ onClose, onMade }: NewProps) => {
  const { id } = useProject();
  const [key, setKey] = useState("");
  const create = async () => {
    // A PEM is sent as text, a JWK as an object; the API explains what is wrong with any other text.
    const isOurs = key.trim() === "";
    const { secret } = await admin.identityKeys.create(id, isOurs ? {} : { public_key: objectOf(key) ?? key });
    onMade(isOurs ? { secret } : undefined);
  };
  return (
    <FormDialog title="New key" verb="Create key" act={create} onClose={onClose}>
      <Textarea
        label="Public key (PEM or JWK)"
        description="If you leave it empty, Herald creates a shared secret for HS256."
        value={key}
        onChange={(event) => setKey(event.currentTarget.value)}
        autosize
        minRows={4}
        maxRows={12}
        spellCheck={false}
        data-autofocus
      />
    </FormDialog>
  );
};

export default function Identity() {
  const { id } = useProject();
  const may = useHasRoleHere("admin");
  return (
    <>
      <RoleNote needs="admin" can="change anything here" />
      <ManagedList<IdentityKey>
        title="Identity keys"
        queryKey={[id, "identity-keys"]}
        load={(page) => admin.identityKeys.list(id, { perPage: 100 }).page(page)}
        empty={{
          title: "No identity keys",
          text: "Your backend signs user tokens with it, so that an app can log in only its own user.",
        }}
        add={may && { label: "New key", Form: NewKey, made: "The new secret" }}
        columns={({ refresh }) => [
          { title: "Id", cell: (row) => <Copyable value={row.id} /> },
          { title: "Algorithm", cell: (row) => row.algorithm },
          { title: "Created", wide: true, cell: (row) => <Time at={row.created_at} /> },
          rowActions(
            (row) =>
              may && (
                <Confirm
                  title="Delete this key?"
                  verb="Delete the key"
                  act={() => admin.identityKeys.delete(id, row.id)}
                  onDone={refresh}
                  about="User tokens signed with it are refused from now on."
                />
              ),
          ),
        ]}
      />
    </>
  );
}
