export { compileTexts, oversizedText } from "./compile-texts.ts";
