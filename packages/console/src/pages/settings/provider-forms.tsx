import type { ProviderView } from "@herald/client";
import { FileButton, JsonInput, PasswordInput, SegmentedControl, SimpleGrid, Stack, Textarea } from "@mantine/core";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { SmallButton } from "../../parts/small-button.tsx";

type Props = {
  /** The current settings, without secrets. */
  readonly settings: ProviderView["settings"];
  readonly onClose: () => void;
  readonly onDone: () => void;
};

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** A server in place of the provider's, such as a simulator or your own gateway. */
const useElsewhere = (settings: Props["settings"]) => {
  const [endpoint, setEndpoint] = useState(textOf(settings.endpoint));
  const [ca, setCa] = useState(textOf(settings.ca));
  const fields = (
    <details className="payload" open={endpoint !== ""}>
      <summary>Use a different server</summary>
      <Stack gap="sm">
        <Field
          label="Endpoint"
          description="Needs HERALD_DISPATCH_CUSTOM_ENDPOINTS=true on dispatch."
          value={endpoint}
          onChange={setEndpoint}
        />
        <Textarea
          label="Certificate authority (PEM)"
          value={ca}
          onChange={(event) => setCa(event.currentTarget.value)}
          autosize
          minRows={2}
          maxRows={5}
        />
      </Stack>
    </details>
  );
  const sent = {
    ...(endpoint.trim() !== "" && { endpoint: endpoint.trim() }),
    ...(ca.trim() !== "" && { ca }),
  };
  return { fields, sent };
};

/** Puts a chosen file's text into a field. */
const FromFile = ({ accept, onText }: { readonly accept: string; readonly onText: (text: string) => void }) => (
  <FileButton accept={accept} onChange={(file) => void file?.text().then(onText)}>
    {(props) => <SmallButton {...props}>Read from a file</SmallButton>}
  </FileButton>
);

export const ApnsForm = ({ settings, onClose, onDone }: Props) => {
  const { id } = useProject();
  const [keyId, setKeyId] = useState(textOf(settings.key_id));
  const [teamId, setTeamId] = useState(textOf(settings.team_id));
  const [bundleId, setBundleId] = useState(textOf(settings.bundle_id));
  const [further, setFurther] = useState([settings.bundle_ids ?? []].flat().map(textOf).join("\n"));
  const [key, setKey] = useState("");
  const [environment, setEnvironment] = useState(settings.environment === "sandbox" ? "sandbox" : "production");
  const { fields, sent } = useElsewhere(settings);
  const act = async () => {
    await admin.providers.set(id, "apns", {
      key_id: keyId.trim(),
      team_id: teamId.trim(),
      bundle_id: bundleId.trim(),
      ...(further.trim() !== "" && { bundle_ids: further.trim().split(/[\s,]+/) }),
      private_key: key,
      environment: environment === "sandbox" ? "sandbox" : "production",
      ...sent,
    });
    onDone();
  };
  return (
    <FormDialog title="Apple Push Notification service" verb="Save" act={act} onClose={onClose} size="lg">
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <Field label="Key id" value={keyId} onChange={setKeyId} data-autofocus />
        <Field label="Team id" value={teamId} onChange={setTeamId} />
      </SimpleGrid>
      <Field label="Bundle id" value={bundleId} onChange={setBundleId} />
      <Textarea
        label="Further bundle ids"
        description="Other apps of the team, one a line. Their devices name their app."
        value={further}
        onChange={(event) => setFurther(event.currentTarget.value)}
        autosize
      />
      <Textarea
        label="Private key (.p8)"
        description="Herald encrypts it and never shows it again."
        value={key}
        onChange={(event) => setKey(event.currentTarget.value)}
        placeholder="-----BEGIN PRIVATE KEY-----"
        autosize
        minRows={3}
        maxRows={6}
        autoComplete="off"
        spellCheck={false}
      />
      <div>
        <FromFile accept=".p8,.pem" onText={setKey} />
      </div>
      <SegmentedControl
        aria-label="Environment"
        value={environment}
        onChange={(value) => setEnvironment(value)}
        data={["production", "sandbox"]}
      />
      {fields}
    </FormDialog>
  );
};

export const FcmForm = ({ settings, onClose, onDone }: Props) => {
  const { id } = useProject();
  const [account, setAccount] = useState("");
  const { fields, sent } = useElsewhere(settings);
  const act = async () => {
    const parsed = (() => {
      try {
        return JSON.parse(account) as Record<string, unknown>;
      } catch {
        throw new Error("service_account: paste the JSON file of a service account");
      }
    })();
    await admin.providers.set(id, "fcm", { service_account: parsed, ...sent });
    onDone();
  };
  return (
    <FormDialog title="Firebase Cloud Messaging" verb="Save" act={act} onClose={onClose} size="lg">
      <JsonInput
        label="Service account (JSON)"
        description="The file from Firebase. Herald encrypts its key and never shows it again."
        value={account}
        onChange={setAccount}
        autosize
        minRows={5}
        maxRows={12}
        data-autofocus
      />
      <div>
        <FromFile accept=".json" onText={setAccount} />
      </div>
      {fields}
    </FormDialog>
  );
};

export const WebPushForm = ({ settings, onClose, onDone }: Props) => {
  const { id } = useProject();
  const [subject, setSubject] = useState(textOf(settings.subject));
  const [site, setSite] = useState(textOf(settings.site));
  const [publicKey, setPublicKey] = useState("");
  const [privateKey, setPrivateKey] = useState("");
  const { fields, sent } = useElsewhere(settings);
  const act = async () => {
    await admin.providers.set(id, "webpush", {
      subject: subject.trim(),
      ...(site.trim() !== "" && { site: site.trim() }),
      ...(publicKey.trim() !== "" && { public_key: publicKey.trim() }),
      ...(privateKey.trim() !== "" && { private_key: privateKey.trim() }),
      ...sent,
    });
    onDone();
  };
  return (
    <FormDialog title="Web Push" verb="Save" act={act} onClose={onClose}>
      <Field
        label="Contact"
        description="Push services use it to contact you about problems."
        placeholder="mailto:push@example.com"
        value={subject}
        onChange={setSubject}
        data-autofocus
      />
      <Field
        label="Site"
        description="The origin of your web app. With it, Safari shows notifications that have a title by itself, and a click opens the link there. Without it, Safari wakes your service worker each time."
        placeholder="https://shop.example.com"
        value={site}
        onChange={setSite}
      />
      <details className="payload">
        <summary>Use your own keys</summary>
        <Stack gap="sm">
          <Field label="Public key" value={publicKey} onChange={setPublicKey} />
          <PasswordInput
            label="Private key"
            value={privateKey}
            onChange={(event) => setPrivateKey(event.currentTarget.value)}
            autoComplete="off"
          />
        </Stack>
      </details>
      {fields}
    </FormDialog>
  );
};
