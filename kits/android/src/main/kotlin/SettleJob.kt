package io.herald

import android.app.job.JobInfo
import android.app.job.JobParameters
import android.app.job.JobScheduler
import android.app.job.JobService
import android.content.ComponentName
import android.content.Context

/** Sends what is pending when its time has come and there is a network, also if the app's process has ended. */
class SettleJob : JobService() {
    override fun onStartJob(parameters: JobParameters?): Boolean {
        Herald.get(this).settled().whenComplete { _, _ -> jobFinished(parameters, false) }
        return true
    }

    /** The kit schedules the next one itself. */
    override fun onStopJob(parameters: JobParameters?): Boolean = false

    internal companion object {
        /** One of the app's own jobs must not have it. */
        private const val ID = 0x48_45_52_41

        fun schedule(context: Context, afterMs: Long) {
            val job = JobInfo.Builder(ID, ComponentName(context, SettleJob::class.java))
                .setRequiredNetworkType(JobInfo.NETWORK_TYPE_ANY)
                .setMinimumLatency(afterMs)
                .build()
            context.getSystemService(JobScheduler::class.java).schedule(job)
        }
    }
}
