import { expect, test } from "vitest";
import { createPersonalContent } from "./personal-content.ts";

const texts = JSON.stringify({
  title: { nodes: [{ output: { from: { path: ["device", "app_version"] }, filters: [] } }] },
});
const render = createPersonalContent(
  { title: "{{ device.app_version }}", targets: [], recipients: { kind: "user", lines: 1 } },
  { texts, locale: "en", values: {}, devicePaths: ["app_version"] },
);

test.each([[undefined], [{}], [{ name: "Ann" }]])(
  "a device whose values are gone gets no text that leaves them out: %j",
  (values) => {
    expect(render({ values } as never)).toMatchObject({ failure: { reason: "values-lost" } });
  },
);

test("a device's values are shown", () => {
  const rendered = render({ values: { device: { app_version: "1.2" } } } as never);
  expect(rendered).toMatchObject({ content: { title: "1.2" } });
});
