export const userTexts = {
  user: "User",
  find: "User id",
  open: "Open",
  emptyTitle: "No users yet",
  empty: "A device gets a user when your backend says so, or when the app logs in with a user token.",
  noDevices: "This user is logged in on no device.",
  sent: "Sent to this user",
  nothingSent: "Nothing was sent to user:<id> yet.",
  erase: "Erase",
  eraseTitle: (user: string) => `Erase ${user}?`,
  eraseText:
    "Their devices are deleted, and Herald forgets the user everywhere: databases within an hour, streams within 30 days. This cannot be undone.",
  eraseVerb: "Erase this user",
};
