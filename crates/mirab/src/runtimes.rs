//! Where bodies execute: the runtime that the scheduler was started in, or a thread for each listed shard.
use crate::builder::no_thread;
use crate::error::Error;
use crate::shard::Shard;
use std::sync::{Arc, Weak};
use std::thread;
use tokio::runtime;
use tokio::sync::watch;

/// A runtime on a thread of its own, until the scheduler has gone.
pub(crate) fn own(name: &str, mut seen: watch::Receiver<()>) -> Result<runtime::Handle, Error> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(|error| no_thread(&error))?;
    let handle = runtime.handle().clone();
    let body = move || runtime.block_on(async { while seen.changed().await.is_ok() {} });
    thread::Builder::new().name(format!("mirab-{name}")).spawn(body).map_err(|error| no_thread(&error))?;
    Ok(handle)
}

/// Notices when a runtime goes before its scheduler does: then nothing can execute, and whoever waits is to be told.
pub(crate) fn watch(shard: &Arc<Shard>, mut seen: watch::Receiver<()>) {
    let sentinel = Sentinel(Arc::downgrade(shard));
    shard.runtime.spawn(async move {
        while seen.changed().await.is_ok() {}
        drop(sentinel);
    });
}

struct Sentinel(Weak<Shard>);

impl Drop for Sentinel {
    fn drop(&mut self) {
        if let Some(shard) = self.0.upgrade() {
            shard.cancel_all();
        }
    }
}
