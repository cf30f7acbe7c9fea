package com.google.firebase.messaging;

import com.google.android.gms.tasks.Task;

public class FirebaseMessaging {
  public static FirebaseMessaging getInstance() {
    throw new UnsupportedOperationException("a signature without Firebase");
  }

  public Task<String> getToken() {
    throw new UnsupportedOperationException("a signature without Firebase");
  }

  public Task<Void> deleteToken() {
    throw new UnsupportedOperationException("a signature without Firebase");
  }
}
