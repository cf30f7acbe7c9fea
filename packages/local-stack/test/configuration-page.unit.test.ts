import { ConfigError, readConfig } from "@herald/kit";
import { expect, test } from "vitest";
import { AnalyticsConfig } from "../../../services/analytics/src/config.ts";
import { DispatchConfig } from "../../../services/dispatch/src/config.ts";
import { GatewayConfig } from "../../../services/gateway/src/config.ts";
import { RegistryConfig } from "../../../services/registry/src/config.ts";
import { BootstrapConfig } from "../../bus/src/ensure-streams.ts";
import { configurationPage } from "./configuration-page.ts";

const parts = [
  { name: "bootstrap", schema: BootstrapConfig, source: "packages/bus/src/ensure-streams.ts" },
  { name: "gateway", schema: GatewayConfig, source: "services/gateway/src/config.ts" },
  { name: "registry", schema: RegistryConfig, source: "services/registry/src/config.ts" },
  { name: "dispatch", schema: DispatchConfig, source: "services/dispatch/src/config.ts" },
  { name: "analytics", schema: AnalyticsConfig, source: "services/analytics/src/config.ts" },
];
const page = configurationPage(parts);

test("the page in docs/reference is this one (npm run docs)", async () => {
  await expect(page).toMatchFileSnapshot("../../../docs/reference/configuration.md");
});

test("a secret has its file beside it, and a default is written as one would set it", () => {
  expect(page).toContain("| `HERALD_ADMIN_TOKEN`<br>`HERALD_ADMIN_TOKEN_FILE` | **required** |");
  expect(page).toContain("| `HERALD_DISPATCH_RETENTION` | `90d` |");
  expect(page).toContain("| `HERALD_NATS_STORAGE` | `8GiB` |");
  expect(page).toContain("| `HERALD_PORT` | gateway `8080`, registry `8081`, dispatch `8082`, analytics `8083` |");
  expect(page).not.toContain("HERALD_PORT_FILE");
});

test("a text that no variable expects is a problem with its name, for each variable of each part", () => {
  for (const { name: part, schema } of parts)
    for (const name of Object.keys(schema.shape))
      for (const text of ["62", "://", "\u{1F4A5}", " "]) {
        const read = () => readConfig(schema, { [name]: text });
        expect(read, `${part} ${name} ${text}`).toThrow(ConfigError);
      }
});
