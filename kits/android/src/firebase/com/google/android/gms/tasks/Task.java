package com.google.android.gms.tasks;

public abstract class Task<TResult> {
  public abstract Task<TResult> addOnSuccessListener(OnSuccessListener<? super TResult> listener);

  public abstract Task<TResult> addOnCompleteListener(OnCompleteListener<TResult> listener);
}
