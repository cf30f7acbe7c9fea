import { useState } from "react";
import { Note } from "../../parts/page.tsx";
import { RecipientsFileInput } from "../recipients-file/file-input.tsx";
import { type FileRecipient, readFirstRecipient } from "../recipients-file/read-file.ts";
import type { Draft } from "./draft.ts";

type Props = {
  readonly change: (changes: Partial<Draft>) => void;
  readonly file: File | undefined;
  /** The file's first recipient. */
  readonly first: FileRecipient | undefined;
  readonly onFile: (file: File | undefined, first: FileRecipient | undefined) => void;
  readonly error: string | undefined;
};

const names: Readonly<Record<string, string>> = { user: "users", device: "devices", token: "push tokens" };

/** The recipients of a draft as a file, each with values of its own. */
export const FileFields = ({ change, file, first, onFile, error }: Props) => {
  const [problem, setProblem] = useState<string>();
  const choose = async (chosen: File | undefined) => {
    onFile(chosen, undefined);
    setProblem(undefined);
    if (chosen === undefined) return;
    const found = await readFirstRecipient(chosen).catch(() => "The browser could not read the file. Choose it again.");
    if (typeof found === "string") return setProblem(found);
    change({ fileOf: found.target.split(":", 1)[0] as Draft["fileOf"] });
    onFile(chosen, found);
  };
  const [kind = ""] = first?.target.split(":", 1) ?? [];
  return (
    <>
      <RecipientsFileInput file={file} onChange={(chosen) => void choose(chosen)} error={problem ?? error} />
      {first && (
        <Note className="break">
          {`It names ${names[kind]}. The first is ${first.target}`}
          {Object.entries(first.variables).map(([name, value]) => `, ${name} ${value}`)}.
        </Note>
      )}
    </>
  );
};
