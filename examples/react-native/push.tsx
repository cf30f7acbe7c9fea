/**
 * Not compiled here: needs `react-native`, `@react-native-firebase/app` and `/messaging`, and `react-native-keychain`.
 * Connects `herald.ts` to an app: import it from `index.js`, before the app is registered.
 */
import messaging, { type FirebaseMessagingTypes } from "@react-native-firebase/messaging";
import { AppState, I18nManager, Linking, PermissionsAndroid, Platform } from "react-native";
import * as Keychain from "react-native-keychain";
import { Herald } from "./herald";

const gateway = "https://push.example.com";
const project = "prj_…";

const storage = {
  getItem: async (key: string) => {
    const found = await Keychain.getGenericPassword({ service: key });
    return found ? found.password : null;
  },
  setItem: async (key: string, value: string) => {
    await Keychain.setGenericPassword("herald", value, { service: key });
  },
};

const locale = I18nManager.getConstants().localeIdentifier ?? "en";
const platform = Platform.OS === "ios" ? "ios" : "android";
/** True: Herald reaches iPhones through FCM, with tokens of FCM. False: Herald sends to APNs itself. */
const iosThroughFcm = false;
const provider = platform === "ios" && iosThroughFcm ? "fcm" : undefined;
export const herald = new Herald({ gateway, project, platform, provider, locale, storage });

const pushToken = async () =>
  Platform.OS === "ios" && !iosThroughFcm ? messaging().getAPNSToken() : messaging().getToken();

const register = async () => {
  const token = await pushToken();
  if (token) await herald.register(token);
};

/** Call it after the user has seen why your app sends notifications. */
export const askForPermission = async () => {
  if (Platform.OS === "android" && Platform.Version >= 33)
    await PermissionsAndroid.request(PermissionsAndroid.PERMISSIONS.POST_NOTIFICATIONS);
  else await messaging().requestPermission();
  await register();
};

export const logout = async () => {
  await herald.logout();
  // FCM drops pushes in transit to the old token. The device keeps its id with the new token.
  if (Platform.OS === "android" || iosThroughFcm) await messaging().deleteToken();
  await register();
};

const open = async (message: FirebaseMessagingTypes.RemoteMessage | null) => {
  if (!message) return;
  const data = message.data ?? {};
  await herald.opened(data);
  if (typeof data.link_to === "string") await Linking.openURL(new URL(data.link_to, "myapp://app/").href);
};

messaging().onTokenRefresh(() => void register());
messaging().onNotificationOpenedApp((message) => void open(message));
messaging()
  .getInitialNotification()
  .then((message) => open(message));
// In the foreground the system shows no notification: the app decides how to show it.
messaging().onMessage(async (message) => console.log(message.notification?.title));
AppState.addEventListener("change", (state) => state === "active" && void herald.settle());
void register();
