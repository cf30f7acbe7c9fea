export type { ApnsRendering } from "./apns.ts";
export { apnsMaxBytes, apnsMaxBytesOf, renderApns } from "./apns.ts";
export { declarativeType, renderDeclarative } from "./declarative.ts";
export type { FcmLifetime, FcmRendering } from "./fcm.ts";
export { fcmMaxBytes, fcmWeight, renderFcm } from "./fcm.ts";
export {
  findOversizedPayloads,
  surelyFitsBytes,
  surelyFitsSiteBytes,
  weighPayloads,
} from "./find-oversized-payloads.ts";
export { hkdfSha256 } from "./hmac-sha256.ts";
export { evaluateLiquid, type LiquidValues } from "./liquid/evaluate.ts";
export { LiquidRenderError } from "./liquid/filters.ts";
export { createRenderPersonal, type RenderPersonal } from "./liquid/personal.ts";
export { type PersonalShown, personalShown } from "./liquid/personal-shown.ts";
export {
  type CompiledText,
  encodeTexts,
  mapTexts,
  mergeLayers,
  renderTexts,
  type TextPlace,
  type Texts,
} from "./liquid/texts.ts";
export type { OpenClaim, OpenKey, OpenTokenFault, OpenTokens } from "./open-token.ts";
export { createOpenTokens, openTokenLifetimeMs } from "./open-token.ts";
export { drawnForm, fullForm, pushForms, receiptAsker } from "./push-form.ts";
export { collapseIdOf, hasForms, type PushForm, type PushOrigin, perForm, plainForm } from "./render.ts";
export type { WebPushRendering } from "./webpush.ts";
export { renderWebPush, webPushMaxBytes, webPushTopic } from "./webpush.ts";
