import type { TestPush as Push, TestedPush } from "@herald/client";
import { Paper, Text } from "@mantine/core";
import { admin, useProject } from "../../api/clients.ts";
import { mono } from "../../parts/code.tsx";
import type { FieldsOf } from "../../parts/field-values.ts";
import { FormButton } from "../../parts/form.tsx";
import { Facts } from "../../parts/page.tsx";

type Keys = NonNullable<Push["keys"]>;
type Entered = Omit<Push, "keys"> & Partial<Keys>;

const tokenField = {
  label: "Push token",
  hint: "One push goes to it now, even while the provider is paused.",
  required: true,
} as const;

const fields: Readonly<Record<"apns" | "fcm" | "webpush", FieldsOf<Entered>>> = {
  apns: {
    token: tokenField,
    environment: {
      label: "Environment",
      as: "segments",
      choices: [{ value: "", label: "as set" }, "production", "sandbox"],
    },
  },
  fcm: { token: tokenField },
  webpush: {
    token: { ...tokenField, label: "Subscription endpoint" },
    p256dh: { label: "p256dh" },
    auth: { label: "auth" },
  },
};

/** Sends one push to one token, and shows the provider's answer word for word. */
export const TestPush = ({ provider }: { readonly provider: keyof typeof fields }) => {
  const { id } = useProject();
  return (
    <FormButton<Entered, TestedPush>
      label="Send a test push"
      button={{ variant: "light" }}
      title="Send a test push"
      verb="Send"
      fields={fields[provider]}
      act={({ p256dh = "", auth = "", ...push }) =>
        admin.providers.test(id, provider, { ...push, ...(provider === "webpush" && { keys: { p256dh, auth } }) })
      }
      leave="Close"
    >
      {(tested) =>
        tested && (
          <Paper p="sm" role="status">
            <strong className={tested.result === "accepted" ? "good" : "bad"}>{tested.result}</strong>
            <Text className="break">{tested.detail}</Text>
            <Facts
              facts={{ "Provider response": mono(tested.provider_reason), "Provider id": mono(tested.provider_id) }}
            />
          </Paper>
        )
      }
    </FormButton>
  );
};
