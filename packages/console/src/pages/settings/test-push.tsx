import type { TestPush as Push } from "@herald/client";
import { Button, Group, Modal, SegmentedControl, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { Facts, Problem } from "../../parts/page.tsx";
import { texts } from "../../texts/common.ts";
import { settingsTexts } from "../../texts/settings.ts";

const t = settingsTexts.testPush;

type Props = { readonly provider: "apns" | "fcm" | "webpush"; readonly onClose: () => void };

/** One push to one token, and what the provider says of it, word for word. */
export const TestPush = ({ provider, onClose }: Props) => {
  const { id } = useProject();
  const [token, setToken] = useState("");
  const [p256dh, setP256dh] = useState("");
  const [auth, setAuth] = useState("");
  const [environment, setEnvironment] = useState("");
  const testing = useMutation({
    mutationFn: () =>
      admin.providers.test(id, provider, {
        token: token.trim(),
        ...(provider === "webpush" && { keys: { p256dh: p256dh.trim(), auth: auth.trim() } }),
        ...(environment !== "" && { environment: environment as NonNullable<Push["environment"]> }),
      }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    testing.mutate();
  };
  const { data } = testing;
  return (
    <Modal opened onClose={onClose} title={t.title}>
      <form className="stack fields" onSubmit={submit}>
        <TextInput
          label={provider === "webpush" ? t.endpoint : t.token}
          description={t.hint}
          inputWrapperOrder={["label", "input", "description"]}
          value={token}
          onChange={(event) => setToken(event.currentTarget.value)}
          data-autofocus
        />
        {provider === "webpush" && (
          <>
            <TextInput label="p256dh" value={p256dh} onChange={(event) => setP256dh(event.currentTarget.value)} />
            <TextInput label="auth" value={auth} onChange={(event) => setAuth(event.currentTarget.value)} />
          </>
        )}
        {provider === "apns" && (
          <SegmentedControl
            aria-label={settingsTexts.providers.environment}
            value={environment}
            onChange={setEnvironment}
            data={[
              { value: "", label: t.asSet },
              { value: "production", label: "production" },
              { value: "sandbox", label: "sandbox" },
            ]}
          />
        )}
        {testing.error && <Problem error={testing.error} />}
        {data && (
          <div className="test-result" role="status">
            <strong className={data.result === "accepted" ? "good" : "bad"}>{data.result}</strong>
            <p className="text break">{data.detail}</p>
            <Facts
              facts={[
                data.provider_reason !== undefined && [
                  t.said,
                  <code key="s" className="mono">
                    {data.provider_reason}
                  </code>,
                ],
                data.provider_id !== undefined && [
                  t.providerId,
                  <code key="i" className="mono">
                    {data.provider_id}
                  </code>,
                ],
              ]}
            />
          </div>
        )}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {texts.common.close}
          </Button>
          <Button type="submit" loading={testing.isPending} disabled={token.trim() === ""}>
            {t.submit}
          </Button>
        </Group>
      </form>
    </Modal>
  );
};
