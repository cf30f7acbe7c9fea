import AsyncStorage from "@react-native-async-storage/async-storage";
import { requireNativeModule } from "expo";
import * as Notifications from "expo-notifications";
import * as SecureStore from "expo-secure-store";
import { AppState, Platform } from "react-native";
import { createDevice } from "./device.ts";
import { type NativeHerald, onAndroid } from "./native.ts";
import { responseOf } from "./response.ts";
import type { Herald, PushStatus } from "./types.ts";

export type { Problem } from "./call.ts";
export type { Herald, KindChoice, KindChoices, PushPayload, PushStatus } from "./types.ts";

export type HeraldOptions = {
  /** The gateway's address and the project's id, as in the config plugin: Android reads them from there. */
  readonly gateway: string;
  readonly project: string;
  /** iOS: the bundle id, if the project's APNs settings name several apps. */
  readonly app?: string;
  /** Called after each attempt to send. */
  readonly onChange?: (status: PushStatus) => void;
  /** Called with the link of a notification, or of its button, that the user opened. */
  readonly onOpen?: (link: string) => void;
};

const identifiers = () => {
  const { locale, timeZone } = Intl.DateTimeFormat().resolvedOptions();
  return { current_locale: locale, current_time_zone: timeZone };
};

const startOnAndroid = ({ onChange, onOpen }: HeraldOptions): Herald => {
  const native = requireNativeModule<NativeHerald>("Herald");
  native.addListener("onChange", (status: PushStatus) => onChange?.(status));
  native.addListener("onOpen", ({ link }: { link: string }) => onOpen?.(link));
  native.start();
  const link = native.takeLink();
  if (link) onOpen?.(link);
  return onAndroid(native);
};

const startOnIos = ({ gateway, project, app, onChange, onOpen }: HeraldOptions): Herald => {
  const herald = createDevice({
    gateway,
    project,
    onChange,
    secrets: {
      get: () => SecureStore.getItemAsync("herald"),
      // The extension and a push in the background run while the phone is locked.
      set: (value) =>
        SecureStore.setItemAsync("herald", value, {
          keychainAccessible: SecureStore.AFTER_FIRST_UNLOCK_THIS_DEVICE_ONLY,
        }),
    },
    store: {
      get: () => AsyncStorage.getItem("herald"),
      set: (value) => AsyncStorage.setItem("herald", value),
    },
    data: () => ({
      platform: "ios",
      identifiers: identifiers(),
      capabilities: ["receipts", "buttons"],
      ...(app && { app }),
      ...(__DEV__ && { environment: "sandbox" }),
    }),
  });
  const respond = (response: Notifications.NotificationResponse | null) => {
    const { push, did, button, link } = responseOf(response) ?? {};
    if (!push) return;
    void (did === "dismissed" ? herald.dismissed(push) : herald.open(push, button));
    if (link) onOpen?.(link);
  };
  Notifications.addPushTokenListener(({ data }) => void herald.register(data));
  Notifications.addNotificationResponseReceivedListener(respond);
  respond(Notifications.getLastNotificationResponse());
  // Fails in a simulator without a push token: then there is nothing to register.
  Notifications.getDevicePushTokenAsync().then(
    ({ data }) => herald.register(data),
    () => undefined,
  );
  AppState.addEventListener("change", (state) => void (state === "active" && herald.settle()));
  return herald;
};

/** Connects the app to Herald: registers the device, reports opens, hands over links. Call it once, before the first screen. */
export const createHerald = (options: HeraldOptions): Herald =>
  Platform.OS === "android" ? startOnAndroid(options) : startOnIos(options);
