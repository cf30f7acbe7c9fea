import type { TemplateContent } from "@herald/contracts";
import { hasCode } from "@herald/kit";
import { describe, expect, test } from "vitest";
import { compileNotification, compileTemplate, renderNotification } from "./templates.ts";

const template: TemplateContent = {
  title: "T {{ n }}",
  body: "B",
  data: { a: "1" },
  locale: "pl",
  localizations: { de: { title: "D {{ n }}", body: "DB" }, fr: { body: "FB" } },
  variables: { n: { type: "number" } },
};

type Own = Parameters<typeof renderNotification>[0]["own"];
const render = (own: Own, { locale, content = template }: { locale?: string; content?: TemplateContent } = {}) => {
  const rendering = {
    template: compileTemplate(content),
    version: { name: "t", version: 1 },
    variables: { n: 2 },
    own,
    locale,
    name: "notification",
  };
  return renderNotification(rendering, compileNotification(rendering));
};

describe("layers", () => {
  test("a send without fields is the template", () => {
    expect(render({})).toEqual({
      title: "T 2",
      body: "B",
      data: { a: "1" },
      localizations: { de: { title: "D 2", body: "DB" }, fr: { body: "FB" } },
      template: { name: "t", version: 1 },
    });
  });

  test("a later field replaces the earlier one in every language", () => {
    expect(render({ title: "S {{ n }}", data: { b: "2" } })).toMatchObject({
      title: "S 2",
      data: { b: "2" },
      localizations: { de: { body: "DB" }, fr: { body: "FB" } },
    });
  });

  test("within a layer a localization wins, and other languages stay", () => {
    expect(render({ title: "S", localizations: { de: { title: "SD" }, it: { body: "SI" } } })).toMatchObject({
      title: "S",
      localizations: { de: { title: "SD", body: "DB" }, fr: { body: "FB" }, it: { body: "SI" } },
    });
  });
});

describe("the language of a text", () => {
  const plural = "{{ n }} {{ n | plural: one: 'paczka', few: 'paczki', other: 'paczek' }}";
  const content: TemplateContent = { ...template, title: plural, localizations: { en: { title: plural } } };
  test("is the template's or the send's outside localizations, and the localization's own within", () => {
    expect(render({}, { content })).toMatchObject({ title: "2 paczki", localizations: { en: { title: "2 paczek" } } });
    expect(render({}, { content, locale: "en" }).title).toBe("2 paczek");
    const { locale: _, ...noLocale } = content;
    expect(render({}, { content: noLocale }).title).toBe("2 paczek");
  });
});

test("every problem is named at once", () => {
  const content: TemplateContent = {
    title: "{{ n | currency: c }}",
    body: "{{ c | date }}",
    variables: { n: { type: "number" }, c: { type: "string", fallback: "x" } },
  };
  try {
    render({}, { content });
    expect.unreachable();
  } catch (error) {
    if (!hasCode(error, "validation-failed")) throw error;
    expect(error.messages).toEqual([
      "notification.title: the filter `currency` cannot use `c`: it needs a code of ISO 4217 such as EUR",
      "notification.body: the filter `date` cannot use `c`: it needs a time such as 2030-01-31T09:00:00Z",
    ]);
  }
});
