import { ConfigError, readConfig, variableInfo } from "@herald/kit";
import { expect, test } from "vitest";
import { z } from "zod";
import { configurationPage } from "./configuration-page.ts";
import { parts, schemas } from "./deployed-parts.ts";

const page = configurationPage();

test("the page in docs/reference is this one (npm run docs)", async () => {
  await expect(page).toMatchFileSnapshot("../../../docs/reference/configuration.md");
});

test("a secret has its file beside it, and a default is written as one would set it", () => {
  expect(page).toMatch(/^### HERALD_ADMIN_TOKEN\n\n.*\n\nDefault: \*\*required\*\*\. Or `HERALD_ADMIN_TOKEN_FILE`\.$/m);
  expect(page).toMatch(/^### HERALD_DISPATCH_RETENTION\n\n.*\n\nDefault: `90d`\./m);
  expect(page).toMatch(/^### HERALD_NATS_STORAGE\n\n.*\n\nDefault: `8GiB`\.$/m);
  expect(page).toContain("Default: gateway `8080`, registry `8081`, dispatch `8082`, analytics `8083`. Read by");
  expect(page).not.toContain("\n|");
  expect(page).not.toContain("HERALD_PORT_FILE");
});

test("the value that a refusal shows as an example is accepted", () => {
  const shown = parts.flatMap((part) =>
    Object.entries(schemas[part].shape).flatMap(([name, type]) => {
      const { example = "", secret = true } = variableInfo(type) ?? {};
      return secret ? [] : [{ name, example, isAccepted: z.safeParse(type, example).success }];
    }),
  );
  expect(shown.length).toBeGreaterThan(40);
  expect(shown.filter(({ isAccepted }) => !isAccepted)).toEqual([]);
});

test("a text that no variable expects is a problem with its name, for each variable of each part", () => {
  for (const part of parts)
    for (const name of Object.keys(schemas[part].shape))
      for (const text of ["62", "://", "\u{1F4A5}", " "]) {
        const read = () => readConfig(schemas[part], { [name]: text });
        expect(read, `${part} ${name} ${text}`).toThrow(ConfigError);
      }
});
