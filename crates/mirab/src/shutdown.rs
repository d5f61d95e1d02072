//! How a scheduler ends.
use crate::cell::lock;
use crate::paused::Counted;
use crate::scheduler::Scheduler;
use crate::shard::Shard;
use std::time::Duration;

impl Scheduler {
    /// Accepts no task any more, lets those that are there end for as long as `grace`, cancels the rest, and comes back when nothing runs. A
    /// function on a thread is waited for: it cannot be stopped.
    ///
    /// With a store, what is cancelled like that stays stored as it was, and goes on when a scheduler starts from the file again.
    ///
    /// Dropping the last clone of a scheduler cancels everything without waiting.
    pub async fn shutdown(&self, grace: Duration) {
        let inner = &self.inner;
        // It is waited for, so a virtual clock moves.
        let _awaited = inner.clock.as_virtual().map(|clock| Counted::new(clock, |clock| &clock.awaited));
        inner.shards.iter().for_each(Shard::close);
        tokio::select! {
            biased;
            () = self.drained() => {}
            () = inner.clock.sleep(grace) => {}
        }
        inner.shards.iter().for_each(Shard::cancel_all);
        self.drained().await;
        drop(lock(&inner.events).take());
        #[cfg(feature = "sqlite")]
        self.close_store().await;
    }

    /// Waits until all is on the disk and told; then another scheduler can have the file.
    #[cfg(feature = "sqlite")]
    async fn close_store(&self) {
        let writer = lock(&self.inner.writer).take();
        if let Some(writer) = writer {
            // A runtime that goes meanwhile takes the wait with it; the file is closed all the same.
            let _ = tokio::task::spawn_blocking(move || drop(writer)).await;
        }
    }

    async fn drained(&self) {
        for shard in &self.inner.shards {
            shard.drained().await;
        }
    }
}
