import type { ProviderView } from "@herald/client";
import { Button, FileButton, JsonInput, PasswordInput, SegmentedControl, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { FormDialog } from "../../parts/form.tsx";
import { texts } from "../../texts/common.ts";
import { settingsTexts } from "../../texts/settings.ts";

const t = settingsTexts.providers;

type Props = {
  /** What is set now, without its secrets. */
  readonly settings: ProviderView["settings"];
  readonly onClose: () => void;
  readonly onDone: () => void;
};

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

type Elsewhere = { readonly endpoint: string; readonly ca: string };

/** Another server than the provider's own: for simulators and gateways of one's own. */
const ElsewhereFields = ({ value, onChange }: { value: Elsewhere; onChange: (value: Elsewhere) => void }) => (
  <details className="payload" open={value.endpoint !== ""}>
    <summary>{t.elsewhere}</summary>
    <div className="stack fields">
      <TextInput
        label={t.endpoint}
        description={t.endpointHint}
        value={value.endpoint}
        onChange={(event) => onChange({ ...value, endpoint: event.currentTarget.value })}
      />
      <Textarea
        label={t.ca}
        value={value.ca}
        onChange={(event) => onChange({ ...value, ca: event.currentTarget.value })}
        autosize
        minRows={2}
        maxRows={5}
      />
    </div>
  </details>
);

const useElsewhere = ({ endpoint, ca }: Props["settings"]) => {
  const [value, onChange] = useState<Elsewhere>({ endpoint: textOf(endpoint), ca: textOf(ca) });
  const sent = {
    ...(value.endpoint.trim() !== "" && { endpoint: value.endpoint.trim() }),
    ...(value.ca.trim() !== "" && { ca: value.ca }),
  };
  return { fields: <ElsewhereFields value={value} onChange={onChange} />, sent };
};

/** Puts a chosen file's text into a field. */
const FromFile = ({ accept, onText }: { readonly accept: string; readonly onText: (text: string) => void }) => (
  <FileButton accept={accept} onChange={(file) => void file?.text().then(onText)}>
    {(props) => (
      <Button {...props} size="compact-sm" variant="default">
        {t.fromFile}
      </Button>
    )}
  </FileButton>
);

export const ApnsForm = ({ settings, onClose, onDone }: Props) => {
  const { id } = useProject();
  const [keyId, setKeyId] = useState(textOf(settings.key_id));
  const [teamId, setTeamId] = useState(textOf(settings.team_id));
  const [bundleId, setBundleId] = useState(textOf(settings.bundle_id));
  const [key, setKey] = useState("");
  const [environment, setEnvironment] = useState(settings.environment === "sandbox" ? "sandbox" : "production");
  const { fields, sent } = useElsewhere(settings);
  const act = async () => {
    await admin.providers.set(id, "apns", {
      key_id: keyId.trim(),
      team_id: teamId.trim(),
      bundle_id: bundleId.trim(),
      private_key: key,
      environment: environment === "sandbox" ? "sandbox" : "production",
      ...sent,
    });
    onDone();
  };
  return (
    <FormDialog title={t.names.apns} verb={texts.common.save} act={act} onClose={onClose} size="lg">
      <div className="columns two tight">
        <TextInput
          label={t.keyId}
          value={keyId}
          onChange={(event) => setKeyId(event.currentTarget.value)}
          data-autofocus
        />
        <TextInput label={t.teamId} value={teamId} onChange={(event) => setTeamId(event.currentTarget.value)} />
      </div>
      <TextInput label={t.bundleId} value={bundleId} onChange={(event) => setBundleId(event.currentTarget.value)} />
      <Textarea
        label={t.p8}
        description={t.secretHint}
        inputWrapperOrder={["label", "input", "error", "description"]}
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
        aria-label={t.environment}
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
        throw new Error(t.notServiceAccount);
      }
    })();
    await admin.providers.set(id, "fcm", { service_account: parsed, ...sent });
    onDone();
  };
  return (
    <FormDialog title={t.names.fcm} verb={texts.common.save} act={act} onClose={onClose} size="lg">
      <JsonInput
        label={t.serviceAccount}
        description={t.serviceAccountHint}
        inputWrapperOrder={["label", "input", "error", "description"]}
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
  const [publicKey, setPublicKey] = useState("");
  const [privateKey, setPrivateKey] = useState("");
  const { fields, sent } = useElsewhere(settings);
  const act = async () => {
    await admin.providers.set(id, "webpush", {
      subject: subject.trim(),
      ...(publicKey.trim() !== "" && { public_key: publicKey.trim() }),
      ...(privateKey.trim() !== "" && { private_key: privateKey.trim() }),
      ...sent,
    });
    onDone();
  };
  return (
    <FormDialog title={t.names.webpush} verb={texts.common.save} act={act} onClose={onClose}>
      <TextInput
        label={t.subject}
        description={t.subjectHint}
        placeholder="mailto:push@example.com"
        value={subject}
        onChange={(event) => setSubject(event.currentTarget.value)}
        data-autofocus
      />
      <details className="payload">
        <summary>{t.ownPair}</summary>
        <div className="stack fields">
          <TextInput
            label={t.publicKey}
            value={publicKey}
            onChange={(event) => setPublicKey(event.currentTarget.value)}
          />
          <PasswordInput
            label={t.privateKey}
            value={privateKey}
            onChange={(event) => setPrivateKey(event.currentTarget.value)}
            autoComplete="off"
          />
        </div>
      </details>
      {fields}
    </FormDialog>
  );
};
