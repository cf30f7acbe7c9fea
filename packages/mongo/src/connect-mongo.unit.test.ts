import { MongoServerError, MongoServerSelectionError } from "mongodb";
import { expect, test } from "vitest";
import { whyWaiting } from "./connect-mongo.ts";

test.each([
  [new MongoServerError({ code: 18, message: "Authentication failed." }), /check user, password and authSource/],
  [new MongoServerError({ code: 13, message: "not authorized on herald_x" }), /the role readWrite on herald_x/],
  [
    new MongoServerSelectionError("connect ECONNREFUSED", {} as never),
    /check HERALD_MONGO_URL, and that the server runs/,
  ],
  [new Error("something else"), /trying again/],
])("%s says what to do", (error, words) => {
  expect(whyWaiting(error, "herald_x")).toMatch(words);
});
