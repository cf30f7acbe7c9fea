import { expect, test } from "vitest";
import { generateSchema } from "../../test/generate-schema.ts";

test("the schema is that of the contracts; a change of the interface is a diff (npm run docs)", async () => {
  await expect(generateSchema()).toMatchFileSnapshot("./schema.json");
});
