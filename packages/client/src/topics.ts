import type { NewTopic, SubscriptionResult, Topic, TopicChange } from "./api-types.ts";
import { type CallOptions, type Http, type PostOptions, path } from "./http.ts";
import { type ListOptions, list, type TimeListOptions } from "./list.ts";

/** Methods take the id or the name of a topic. */
export const createTopics = (http: Http) => ({
  create: (topic: NewTopic, options?: PostOptions) => http.post<Topic>("/topics", options, { topic }),
  get: (topic: string, options?: CallOptions) => http.get<Topic>(path`/topics/${topic}`, options),
  /** `prefix`: only topics whose name begins with it, sorted by name. Not with `sort` or a time range. */
  list: (options?: TimeListOptions | (ListOptions & { readonly prefix: string | undefined })) =>
    list<Topic>(http, "/topics", options),
  /** Closes a topic, so that only project tokens can subscribe devices, or opens it again. */
  update: (topic: string, change: TopicChange, options?: CallOptions) =>
    http.patch<Topic>(path`/topics/${topic}`, options, { topic: change }),
  delete: (topic: string, options?: CallOptions) => http.remove(path`/topics/${topic}`, options),
  /** Subscribes up to 1,000 devices. An unknown name creates the topic. */
  subscribe: (topic: string, devices: readonly string[], options?: CallOptions) =>
    http.put<SubscriptionResult>(path`/topics/${topic}/devices`, options, { devices }),
  unsubscribe: (topic: string, devices: readonly string[], options?: CallOptions) =>
    http.delete<SubscriptionResult>(path`/topics/${topic}/devices`, options, { devices }),
});
