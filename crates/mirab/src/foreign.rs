//! Code of the program: bodies, what errors say, codecs, and what runs when its values are dropped. It may panic, and nothing of the scheduler may
//! end with it; it may call the scheduler, so it never runs under a lock.
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls it; a panic as what it said.
pub(crate) fn guarded<R>(call: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let text = message(&*panic);
        // What was panicked with may panic in going.
        std::mem::forget(panic);
        text
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}

/// Drops a value.
pub(crate) fn let_go<T>(value: T) {
    drop(guarded(|| drop(value)));
}
