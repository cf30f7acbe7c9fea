import { JsonInput, SimpleGrid, Textarea } from "@mantine/core";
import type { ReactNode } from "react";
import { Field } from "./field.tsx";

/** What a person writes of a message, before it is checked. `more`: its other fields, as JSON. */
type Message = {
  readonly title: string;
  readonly body: string;
  readonly link: string;
  readonly image: string;
  readonly more: string;
};

/** The fields of a message that are written by hand; `children` stand above its JSON. */
export const MessageFields = ({
  value,
  change,
  problemOf,
  placeholders,
  aboutMore,
  badMore,
  besideTitle,
  children,
}: {
  readonly value: Message;
  readonly change: (changes: Partial<Message>) => void;
  /** What is wrong with a field of the notification. */
  readonly problemOf: (field: string) => string | undefined;
  readonly placeholders: {
    readonly title?: string | undefined;
    readonly body?: string | undefined;
    readonly link: string;
    readonly image?: string | undefined;
    readonly more: string;
  };
  readonly aboutMore: string;
  /** What to write instead, if the JSON cannot be read. */
  readonly badMore: string | undefined;
  /** Beside the title. */
  readonly besideTitle?: ReactNode;
  readonly children?: ReactNode;
}) => (
  <>
    <Field
      label="Title"
      placeholder={placeholders.title}
      value={value.title}
      onChange={(title) => change({ title })}
      error={problemOf("title")}
      {...(besideTitle && { maxLength: 300, rightSectionWidth: 64, rightSection: besideTitle })}
    />
    <Textarea
      label="Text"
      placeholder={placeholders.body}
      value={value.body}
      onChange={(event) => change({ body: event.currentTarget.value })}
      error={problemOf("body")}
      autosize
      minRows={3}
      maxRows={12}
    />
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
      <Field
        label="Link"
        placeholder={placeholders.link}
        value={value.link}
        onChange={(link) => change({ link })}
        error={problemOf("link_to")}
      />
      <Field
        label="Image"
        placeholder={placeholders.image ?? "https://…"}
        value={value.image}
        onChange={(image) => change({ image })}
        error={problemOf("image")}
      />
    </SimpleGrid>
    {children}
    <details className="payload" open={value.more !== ""}>
      <summary>More fields as JSON</summary>
      <JsonInput
        aria-label="More fields as JSON"
        description={aboutMore}
        placeholder={placeholders.more}
        value={value.more}
        onChange={(more) => change({ more })}
        error={badMore}
        autosize
        minRows={3}
        formatOnBlur
      />
    </details>
  </>
);
