import type { TestPush as Push, TestedPush } from "@herald/client";
import { Paper, SegmentedControl, Text } from "@mantine/core";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { Facts, mono } from "../../parts/page.tsx";

type Props = { readonly provider: "apns" | "fcm" | "webpush"; readonly onClose: () => void };

/** Sends one push to one token, and shows the provider's answer word for word. */
export const TestPush = ({ provider, onClose }: Props) => {
  const { id } = useProject();
  const [token, setToken] = useState("");
  const [p256dh, setP256dh] = useState("");
  const [auth, setAuth] = useState("");
  const [environment, setEnvironment] = useState("");
  const [result, setResult] = useState<TestedPush>();
  const send = async () => {
    setResult(undefined);
    const tested = await admin.providers.test(id, provider, {
      token: token.trim(),
      ...(provider === "webpush" && { keys: { p256dh: p256dh.trim(), auth: auth.trim() } }),
      ...(environment !== "" && { environment: environment as NonNullable<Push["environment"]> }),
    });
    setResult(tested);
  };
  return (
    <FormDialog
      title="Send a test push"
      verb="Send"
      act={send}
      onClose={onClose}
      ready={token.trim() !== ""}
      leave="Close"
    >
      <Field
        label={provider === "webpush" ? "Subscription endpoint" : "Push token"}
        description="One push goes to it now, even while the provider is paused."
        value={token}
        onChange={setToken}
        data-autofocus
      />
      {provider === "webpush" && (
        <>
          <Field label="p256dh" value={p256dh} onChange={setP256dh} />
          <Field label="auth" value={auth} onChange={setAuth} />
        </>
      )}
      {provider === "apns" && (
        <SegmentedControl
          aria-label="Environment"
          value={environment}
          onChange={setEnvironment}
          data={[
            { value: "", label: "as set" },
            { value: "production", label: "production" },
            { value: "sandbox", label: "sandbox" },
          ]}
        />
      )}
      {result && (
        <Paper withBorder p="sm" role="status">
          <strong className={result.result === "accepted" ? "good" : "bad"}>{result.result}</strong>
          <Text className="break">{result.detail}</Text>
          <Facts
            facts={{ "Provider response": mono(result.provider_reason), "Provider id": mono(result.provider_id) }}
          />
        </Paper>
      )}
    </FormDialog>
  );
};
