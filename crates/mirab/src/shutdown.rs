//! How a scheduler ends.
use crate::paused::Counted;
use crate::scheduler::Scheduler;
use crate::shard::Shard;
use std::time::Duration;

impl Scheduler {
    /// Accepts no task any more, lets those that are there end for as long as `grace`, cancels the rest, and comes back when nothing runs. A
    /// function on a thread is waited for: it cannot be stopped.
    ///
    /// Dropping the last clone of a scheduler cancels everything without waiting.
    pub async fn shutdown(&self, grace: Duration) {
        let inner = &self.inner;
        // It is waited for, so a virtual clock moves.
        let _awaited = inner.clock.as_virtual().map(|clock| Counted::new(clock, |clock| &clock.awaited));
        inner.shards.iter().for_each(Shard::close);
        tokio::select! {
            biased;
            () = self.drained() => return,
            () = inner.clock.sleep(grace) => {}
        }
        inner.shards.iter().for_each(Shard::cancel_all);
        self.drained().await;
    }

    async fn drained(&self) {
        for shard in &self.inner.shards {
            shard.drained().await;
        }
    }
}
