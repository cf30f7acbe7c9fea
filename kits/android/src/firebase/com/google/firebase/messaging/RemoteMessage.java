package com.google.firebase.messaging;

import android.net.Uri;
import java.util.Map;

/** Tests make one of a simulator's push; Firebase's has no such constructor. */
public final class RemoteMessage {
  private final Map<String, String> data;
  private final Notification notification;

  public RemoteMessage(Map<String, String> data, Notification notification) {
    this.data = data;
    this.notification = notification;
  }

  public Map<String, String> getData() {
    return data;
  }

  public Notification getNotification() {
    return notification;
  }

  public static class Notification {
    private final Map<String, String> fields;

    public Notification(Map<String, String> fields) {
      this.fields = fields;
    }

    public String getTitle() {
      return fields.get("title");
    }

    public String getBody() {
      return fields.get("body");
    }

    public Uri getImageUrl() {
      String image = fields.get("image");
      return image == null ? null : Uri.parse(image);
    }

    public String getChannelId() {
      return fields.get("channel_id");
    }

    public String getTag() {
      return fields.get("tag");
    }
  }
}
