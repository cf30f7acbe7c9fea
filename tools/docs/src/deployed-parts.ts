import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BootstrapConfig } from "@herald/bus";
import { parse } from "yaml";
import { AnalyticsConfig } from "../../../services/analytics/src/config.ts";
import { DispatchConfig } from "../../../services/dispatch/src/config.ts";
import { GatewayConfig } from "../../../services/gateway/src/config.ts";
import { RegistryConfig } from "../../../services/registry/src/config.ts";

/** The deployed parts, their configuration and their services in docker-compose.yml, for the documentation and the tests of both deployments. */

export type PartEnvironment = Record<string, string>;
type ComposeService = {
  image: string;
  environment?: PartEnvironment;
  env_file?: string[];
  networks?: string[];
  ports?: string[];
  stop_grace_period?: string;
};
type Compose = { services: Record<string, ComposeService>; networks: Record<string, unknown> };

export const root = join(import.meta.dirname, "../../..");
export const read = (path: string): string => readFileSync(join(root, path), "utf8");

export const schemas = {
  bootstrap: BootstrapConfig,
  gateway: GatewayConfig,
  registry: RegistryConfig,
  dispatch: DispatchConfig,
  analytics: AnalyticsConfig,
} as const;
export type DeployedPart = keyof typeof schemas;
export const parts = Object.keys(schemas) as DeployedPart[];
export const services = parts.filter((part) => part !== "bootstrap");

/** The file with the doc comments of a part's own variables. */
export const configSource = (part: DeployedPart): string =>
  part === "bootstrap" ? "packages/bus/src/ensure-streams.ts" : `services/${part}/src/config.ts`;

/** Ignores the tags that say how a file overrides another. */
export const readCompose = (path: string): Compose => parse(read(path), { merge: true, logLevel: "error" });
export const compose = readCompose("docker-compose.yml");
