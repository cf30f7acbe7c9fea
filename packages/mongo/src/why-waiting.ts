import { MongoServerError, MongoServerSelectionError } from "mongodb";

const unauthorized = 13;
const authenticationFailed = 18;

/** Why a service waits for its database, and what its operator can do. The driver's own words are in the log beside it. */
export const whyWaiting = (error: unknown, database: string): string => {
  if (error instanceof MongoServerError && error.code === authenticationFailed)
    return "the database refuses the user: check user, password and authSource in HERALD_MONGO_URL";
  if (error instanceof MongoServerError && error.code === unauthorized)
    return `not authorized: HERALD_MONGO_URL needs a user with the role readWrite on ${database}`;
  if (error instanceof MongoServerSelectionError)
    return "the database cannot be reached: check HERALD_MONGO_URL, and that the server runs";
  return "trying again until it succeeds";
};
