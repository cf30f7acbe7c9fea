export const topicTexts = {
  new: "New topic",
  name: "Name",
  closed: "Closed",
  closedHint: "Only a project token subscribes devices to it.",
  create: "Create topic",
  emptyTitle: "No topics yet",
  empty: "Devices subscribe to topics, and a notification to topic:<name> reaches all of them.",
  deleteTitle: (name: string) => `Delete the topic ${name}?`,
  deleteText: (devices: string) => `${devices} devices lose their subscription. Nothing that was sent changes.`,
  deleteVerb: "Delete the topic",
};
