import type { NewTopic, SubscriptionResult, Topic, TopicChange } from "./api-types.ts";
import { type CallOptions, type Http, type PostOptions, path } from "./http.ts";
import { list, type TimeListOptions } from "./list.ts";

/** A topic is named by its id or its name. */
export const createTopics = (http: Http) => ({
  create: (topic: NewTopic, options?: PostOptions) => http.post<Topic>("/topics", options, { topic }),
  get: (topic: string, options?: CallOptions) => http.get<Topic>(path`/topics/${topic}`, options),
  list: (options?: TimeListOptions) => list<Topic>(http, "/topics", options),
  /** Closes it, so that only a project token subscribes devices, or opens it again. */
  update: (topic: string, change: TopicChange, options?: CallOptions) =>
    http.patch<Topic>(path`/topics/${topic}`, options, { topic: change }),
  delete: (topic: string, options?: CallOptions) => http.remove(path`/topics/${topic}`, options),
  /** Up to 1,000 devices. A name that does not exist is created. */
  subscribe: (topic: string, devices: readonly string[], options?: CallOptions) =>
    http.put<SubscriptionResult>(path`/topics/${topic}/devices`, options, { devices }),
  unsubscribe: (topic: string, devices: readonly string[], options?: CallOptions) =>
    http.delete<SubscriptionResult>(path`/topics/${topic}/devices`, options, { devices }),
});
