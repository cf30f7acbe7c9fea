import { expect, test } from "vitest";
import { refusalAdvice } from "./refusal-advice.ts";

test.each([
  ["InvalidProviderToken", "key_id and team_id"],
  ["BadEnvironmentKeyIdInToken", "`environment`"],
  ["TopicDisallowed", "bundle_id"],
  [
    "PERMISSION_DENIED: Firebase Cloud Messaging API has not been used in project 7",
    "Enable the Firebase Cloud Messaging",
  ],
  ["invalid_grant", "service account and its key exist"],
  [
    "invalid_grant: Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.",
    "clock",
  ],
  ["invalid_grant: Invalid JWT Signature.", "The key was deleted"],
  ["invalid_grant: Invalid grant: account not found", "The service account was deleted"],
  ["constructor", "key, ids and environment"],
  ["Novelty: invalid jwt signature", "key, ids and environment"],
  ["", "key, ids and environment"],
])("%s: check %s", (said, check) => expect(refusalAdvice(said)).toContain(check));
